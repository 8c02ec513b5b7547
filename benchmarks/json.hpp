// Writes results as JSON: objects, lists, texts and numbers.
#pragma once

#include <cmath>
#include <fstream>
#include <thread>

#include "measure.hpp"

namespace bench {

class json {
 public:
    /// Begins an object `{` or a list `[`, as a member called `name` unless that is empty.
    json& open(char bracket, std::string_view name = {}) {
        begin(name);
        text_ += bracket;
        closing_ += bracket == '{' ? '}' : ']';
        first_ = true;
        return *this;
    }
    json& close() {
        text_ += closing_.back();
        closing_.pop_back();
        first_ = false;
        return *this;
    }
    json& add(std::string_view name, std::string_view value) {
        begin(name);
        quote(value);
        return *this;
    }
    /// What is not a number is null.
    json& add(std::string_view name, double value) {
        begin(name);
        text_ += std::isfinite(value) ? text("%.6g", value) : "null";
        return *this;
    }
    /// The median of `samples` with the least and the most of them. REQUIRES: there is one.
    json& add(std::string_view name, const std::vector<double>& samples) {
        const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
        return open('{', name).add("median", median(samples)).add("least", *least).add("most", *most).close();
    }

    /// Writes it to `file`, unless that is empty.
    void save(const std::filesystem::path& file) const {
        if (file.empty()) return;
        std::ofstream out(file);
        if (!(out << text_ << '\n').flush()) fail(file);
    }

 private:
    void begin(std::string_view name) {
        if (!first_) text_ += ',';
        first_ = false;
        if (name.empty()) return;
        if (closing_.size() <= 4) text_ += '\n';
        quote(name);
        text_ += ':';
    }
    void quote(std::string_view value) {
        text_ += '"';
        for (const char c : value) {
            if (c == '"' || c == '\\') text_ += '\\';
            if (static_cast<unsigned char>(c) >= ' ') text_ += c;
        }
        text_ += '"';
    }

    std::string text_;
    std::string closing_;
    bool first_ = true;
};

/// Adds what numbers depend on.
inline void add_machine(json& j) {
    std::string model;
    std::ifstream cpus("/proc/cpuinfo");
    for (std::string line; model.empty() && std::getline(cpus, line);)
        if (line.starts_with("model name")) model = line.substr(line.find(':') + 2);
    std::string kernel;
    std::ifstream("/proc/sys/kernel/osrelease") >> kernel;
    j.open('{', "machine").add("processor", model).add("cores", std::thread::hardware_concurrency());
    j.add("kernel", kernel).close();
}

}  // namespace bench
