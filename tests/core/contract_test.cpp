// What a world promises to the protocol. Each case runs in the simulated world and in the real one, in memory and on
// disk: the double has to agree with the kernel.
#include <boost/test/data/test_case.hpp>

#include <set>

#include "contract.hpp"

using namespace contract;

#define FSLOCK_CONTRACT(name) BOOST_DATA_TEST_CASE(name, boost::unit_test::data::make(everywhere), world_kind)

BOOST_AUTO_TEST_SUITE(a_world)

FSLOCK_CONTRACT(creates_a_file_only_where_nothing_is) {
    const auto s = make(world_kind);
    const auto made = s->make("a");
    BOOST_TEST(made.facts.links == 1U);
    BOOST_TEST(made.facts.size == 0U);
    BOOST_TEST((made.facts.kind == file_kind::regular));
    BOOST_TEST(made.facts.same_inode(s->facts(s->one(), made.file)));
    const auto again = s->get(s->two().create(s->at("a"), 0600, fs_class::local));
    BOOST_TEST(is(again.error(), EEXIST));
}

FSLOCK_CONTRACT(says_ENOENT_of_what_is_not_there) {
    const auto s = make(world_kind);
    BOOST_TEST(is(s->facts_error("a"), ENOENT));
    BOOST_TEST(is(s->get(s->one().open(s->at("a"), os::access::read, fs_class::local)).error(), ENOENT));
    BOOST_TEST(is(s->get(s->one().unlink(s->at("a"))), ENOENT));
    BOOST_TEST(is(s->get(s->one().rename(s->at("a"), s->at("b"))), ENOENT));
    BOOST_TEST(is(s->get(s->one().rename_exclusive(s->at("a"), s->at("b"))), ENOENT) ==
               !is(s->get(s->one().rename_exclusive(s->at("a"), s->at("b"))), EINVAL));
}

FSLOCK_CONTRACT(does_not_follow_a_symbolic_link) {
    const auto s = make(world_kind);
    s->put_symlink("a");
    BOOST_TEST(is(s->get(s->one().open(s->at("a"), os::access::read, fs_class::local)).error(), ELOOP));
    const auto found = s->get(s->one().facts_at(s->at("a")));
    BOOST_TEST_REQUIRE(!found.error());
    BOOST_TEST((found->kind == file_kind::symlink));
    BOOST_TEST(is(s->get(s->one().create(s->at("a"), 0600, fs_class::local)).error(), EEXIST));
}

FSLOCK_CONTRACT(opens_a_directory_only_for_reading) {
    const auto s = make(world_kind);
    s->put_directory("a");
    const auto f = s->open(s->one(), "a");
    BOOST_TEST((s->facts(s->one(), f).kind == file_kind::directory));
    BOOST_TEST(is(s->get(s->one().open(s->at("a"), os::access::read_write, fs_class::local)).error(), EISDIR));
}

FSLOCK_CONTRACT(links_a_file_without_a_name_only_where_nothing_is) {
    const auto s = make(world_kind);
    auto made = s->get(s->one().create_unnamed(s->at(""), 0600, fs_class::local));
    if (is(made.error(), EOPNOTSUPP)) return;  // neither this system nor this filesystem has them
    BOOST_TEST_REQUIRE(!made.error());
    BOOST_TEST(s->facts(s->one(), made->file).links == 0U);
    BOOST_TEST(!s->get(s->one().write(made->file, "mine")));
    BOOST_TEST(!s->get(s->one().link(made->file, "", s->at("a"))));
    BOOST_TEST(s->facts(s->one(), made->file).links == 1U);
    BOOST_TEST(is(s->get(s->one().link(made->file, "", s->at("a"))), EEXIST));
    const auto seen = s->open(s->two(), "a");
    BOOST_TEST(s->text_of(s->two(), seen) == "mine");
    BOOST_TEST(s->facts(s->two(), seen).same_inode(made->facts));
}

FSLOCK_CONTRACT(links_a_file_under_a_second_name) {
    const auto s = make(world_kind);
    const auto made = s->make("a");
    BOOST_TEST(!s->get(s->one().link(made.file, s->at("a"), s->at("b"))));
    BOOST_TEST(s->facts(s->one(), made.file).links == 2U);
    BOOST_TEST(is(s->get(s->one().link(made.file, s->at("a"), s->at("b"))), EEXIST));
    BOOST_TEST(s->get(s->one().has_name(s->at("").substr(0, s->at("").size() - 1), "b", made.facts)));
    BOOST_TEST(!s->get(s->one().has_name(s->at("").substr(0, s->at("").size() - 1), "c", made.facts)));
    BOOST_TEST(!s->get(s->one().unlink(s->at("a"))));
    BOOST_TEST(s->facts(s->one(), made.file).links == 1U);
}

FSLOCK_CONTRACT(keeps_a_removed_file_for_those_who_have_it_open) {
    const auto s = make(world_kind);
    const auto made = s->make("a", "first");
    const auto seen = s->open(s->two(), "a");
    BOOST_TEST(!s->get(s->one().unlink(s->at("a"))));
    BOOST_TEST(is(s->facts_error("a"), ENOENT));
    const auto next = s->make("a", "second");
    BOOST_TEST(s->facts(s->two(), seen).links == 0U);
    BOOST_TEST(s->text_of(s->two(), seen) == "first");
    BOOST_TEST(!s->facts(s->two(), seen).same_inode(next.facts));  // while it is open its number is not used again
    BOOST_TEST(!s->get(s->one().write(made.file, "FIRST")));
    BOOST_TEST(s->text_of(s->two(), seen) == "FIRST");
    BOOST_TEST(s->text_of(s->two(), s->open(s->two(), "a")) == "second");
}

FSLOCK_CONTRACT(writes_from_the_beginning_and_cuts_nothing_off) {
    const auto s = make(world_kind);
    const auto made = s->make("a", "abcdef");
    BOOST_TEST(!s->get(s->one().write(made.file, "xyz")));
    BOOST_TEST(s->text_of(s->one(), made.file) == "xyzdef");
    BOOST_TEST(s->facts(s->one(), made.file).size == 6U);
    const auto read_only = s->open(s->one(), "a");
    BOOST_TEST(is(s->get(s->one().write(read_only, "no")), EBADF));
}

FSLOCK_CONTRACT(renames_over_a_file_only_when_it_may) {
    const auto s = make(world_kind);
    const auto a = s->make("a", "a");
    const auto b = s->make("b", "b");
    const auto refused = s->get(s->one().rename_exclusive(s->at("a"), s->at("b")));
    BOOST_TEST((is(refused, EEXIST) || is(refused, EINVAL)));
    BOOST_TEST(s->text_of(s->two(), s->open(s->two(), "b")) == "b");
    const auto exclusive = s->get(s->one().rename_exclusive(s->at("a"), s->at("c")));
    if (is(refused, EEXIST)) BOOST_TEST(!exclusive);
    const auto* const from = is(refused, EEXIST) ? "c" : "a";
    BOOST_TEST(!s->get(s->one().rename(s->at(from), s->at("b"))));
    BOOST_TEST(s->text_of(s->two(), s->open(s->two(), "b")) == "a");
    BOOST_TEST(is(s->facts_error("a"), ENOENT));
    BOOST_TEST(s->facts(s->one(), b.file).links == 0U);
}

FSLOCK_CONTRACT(moves_the_time_of_a_file_with_a_touch_and_with_a_write) {
    const auto s = make(world_kind);
    const auto made = s->make("a");
    const auto touched = s->get(s->one().touch(made.file));
    BOOST_TEST_REQUIRE(!touched.error());
    BOOST_TEST(*touched >= made.facts.modified_ns);
    BOOST_TEST(s->facts(s->one(), made.file).modified_ns == *touched);
    BOOST_TEST(s->get(s->two().facts_at(s->at("a")))->modified_ns == *touched);
    BOOST_TEST(!s->get(s->one().write(made.file, "a")));
    BOOST_TEST(s->facts(s->one(), made.file).modified_ns >= *touched);
}

FSLOCK_CONTRACT(gives_a_lock_to_one_descriptor_at_a_time) {
    const auto s = make(world_kind);
    const auto made = s->make("a");
    auto other = s->open(s->two(), "a", os::access::read_write);
    BOOST_TEST((s->probe(s->two(), other, lock_byte::witness) == lock_state::free));
    BOOST_TEST((s->lock(s->one(), made.file, lock_byte::witness) == lock_state::free));
    BOOST_TEST((s->lock(s->one(), made.file, lock_byte::witness) == lock_state::free));  // it has it
    BOOST_TEST((s->lock(s->two(), other, lock_byte::witness) == lock_state::held));
    BOOST_TEST((s->probe(s->two(), other, lock_byte::witness) == lock_state::held));
    // Not of its own. (A flock is asked for by taking it, which the owner must not do.)
    if (s->has_bytes()) BOOST_TEST((s->probe(s->one(), made.file, lock_byte::witness) == lock_state::free));
    if (s->has_bytes()) BOOST_TEST((s->lock(s->two(), other, lock_byte::removal) == lock_state::free));
    BOOST_TEST(!s->get(s->one().unlock(made.file, lock_byte::witness, s->one().system_witness())));
    BOOST_TEST((s->lock(s->two(), other, lock_byte::witness) == lock_state::free));
    other.close();
    BOOST_TEST((s->lock(s->one(), made.file, lock_byte::witness) == lock_state::free));
}

FSLOCK_CONTRACT(does_not_give_back_what_another_has) {
    const auto s = make(world_kind);
    const auto made = s->make("a");
    const auto other = s->open(s->two(), "a", os::access::read_write);
    BOOST_TEST((s->lock(s->one(), made.file, lock_byte::witness) == lock_state::free));
    BOOST_TEST(!s->get(s->two().unlock(other, lock_byte::witness, s->two().system_witness())));
    BOOST_TEST((s->probe(s->two(), other, lock_byte::witness) == lock_state::held));
}

FSLOCK_CONTRACT(answers_a_probe_through_a_descriptor_that_can_only_read) {
    const auto s = make(world_kind);
    const auto made = s->make("a");
    const auto reader = s->open(s->two(), "a");
    BOOST_TEST((s->probe(s->two(), reader, lock_byte::witness) == lock_state::free));
    BOOST_TEST((s->lock(s->one(), made.file, lock_byte::witness) == lock_state::free));
    BOOST_TEST((s->probe(s->two(), reader, lock_byte::witness) == lock_state::held));
    if (s->has_bytes()) {
        BOOST_TEST((s->lock(s->two(), reader, lock_byte::removal) == lock_state::unknown));
        BOOST_TEST((s->probe(s->one(), made.file, lock_byte::removal) == lock_state::free));
    }
}

FSLOCK_CONTRACT(keeps_a_lock_on_the_file_wherever_its_name_goes) {
    const auto s = make(world_kind);
    const auto made = s->make("a");
    BOOST_TEST((s->lock(s->one(), made.file, lock_byte::witness) == lock_state::free));
    BOOST_TEST(!s->get(s->two().rename(s->at("a"), s->at("b"))));
    const auto moved = s->open(s->two(), "b");
    BOOST_TEST((s->probe(s->two(), moved, lock_byte::witness) == lock_state::held));
    const auto next = s->make("a");
    BOOST_TEST((s->probe(s->two(), s->open(s->two(), "a"), lock_byte::witness) == lock_state::free));
}

FSLOCK_CONTRACT(ends_the_locks_of_a_process_with_it) {
    const auto s = make(world_kind);
    const auto made = s->make("a");
    s->die_with_locks("a", [&] { BOOST_TEST((s->probe(s->one(), made.file, lock_byte::witness) == lock_state::held)); });
    BOOST_TEST((s->probe(s->one(), made.file, lock_byte::witness) == lock_state::free));
}

FSLOCK_CONTRACT(knows_its_own_process_and_no_other_of_no_number) {
    const auto s = make(world_kind);
    const auto& self = s->one().self();
    const auto me = s->get(s->one().process(self.pid));
    BOOST_TEST((me.life == process_facts::state::exists));
    BOOST_TEST((me.start_time == self.start_time));
    BOOST_TEST((s->get(s->one().process(2'000'000'000)).life == process_facts::state::gone));
}

FSLOCK_CONTRACT(gives_stamps_that_only_grow) {
    const auto s = make(world_kind);
    const auto first = s->one().next_stamp(0);
    const auto second = s->one().next_stamp(0);
    BOOST_TEST(second > first);
    const auto floor = second + 3'600'000'000'000;
    BOOST_TEST(s->one().next_stamp(floor) > floor);
}

BOOST_AUTO_TEST_CASE(stamps_above_a_floor_that_others_know_are_given_by_chance) {
    std::set<std::int64_t> steps;
    auto floor = this_world().next_stamp(0);
    for (int i = 0; i < 8; ++i) {
        floor += 3'600'000'000'000;
        steps.insert(this_world().next_stamp(floor) - floor);
    }
    BOOST_TEST(steps.size() > 1U);
    BOOST_TEST(*steps.rbegin() < 20'000);  // a clock that was set back catches up, however often a lock changes hands
}

BOOST_AUTO_TEST_SUITE_END()
