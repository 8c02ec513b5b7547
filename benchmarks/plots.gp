# Draws what `contention` and `growth` have left in the directory `tables` into the directory `out`:
#   gnuplot -e "tables='DIR'; out='DIR'" plots.gp
# No background, grey text and colours of one brightness: readable on light and on dark pages.
grey = '#7d8590'
set terminal svg size 860,480 dynamic noenhanced font 'sans-serif,13'
set border 3 lc rgb grey
set xtics nomirror textcolor rgb grey
set ytics nomirror textcolor rgb grey
set grid ytics lc rgb grey lw 0.4 dt 3
set key textcolor rgb grey
set title textcolor rgb grey
set xlabel textcolor rgb grey
set ylabel textcolor rgb grey
set linetype 1 lc rgb '#d55e00' lw 3
set linetype 2 lc rgb '#2f8fd0' lw 2
set linetype 3 lc rgb '#56b4e9' lw 2 dt 2
set linetype 4 lc rgb '#cc79a7' lw 2
set linetype 5 lc rgb '#009e73' lw 2
set linetype 6 lc rgb '#d29a00' lw 2
set linetype 7 lc rgb '#8f7fd6' lw 2 dt 2
set linetype 8 lc rgb '#8a8a8a' lw 2 dt 2
set linetype cycle 8
set datafile separator "\t"
set datafile missing 'nan'
set logscale xy

there_is(file) = int(system(sprintf("test -s '%s' && echo 1 || echo 0", file)))
times = "('1 µs' 1, '10 µs' 10, '100 µs' 100, '1 ms' 1e3, '10 ms' 1e4, '100 ms' 1e5, '1 s' 1e6, '10 s' 1e7)"

# ---- how long the slowest of so many waits take -----------------------------------------------------------------
file = tables.'/waits-held.tsv'
if (there_is(file)) {
    set output out.'/waits.svg'
    set title "8 processes contend, held 1 ms: wait, and Jain's index (1: fair)"
    set xlabel 'share of the acquisitions that waited no longer'
    set xtics ('0 %%' 1, '50 %%' 2, '90 %%' 10, '99 %%' 100, '99.9 %%' 1000)
    eval('set ytics '.times)
    set xrange [1:2000]
    set yrange [0.3:*]
    set key outside right top Left reverse
    stats file using 1 nooutput
    plot for [i = 0:STATS_blocks - 2] file index i using ($2 < 1 ? 1 / (1 - $2) : NaN):1 with lines lt i + 1 \
        title columnheader(1)
    set xtics autofreq
    set xrange [*:*]
}

# ---- what grows -------------------------------------------------------------------------------------------------
file(key) = tables.'/growth-'.key.'.tsv'
if (there_is(file('held'))) {
    set terminal svg size 860,640 dynamic noenhanced font 'sans-serif,12'
    set output out.'/growth.svg'
    set multiplot layout 2,2
    set xtics autofreq
    set xtics (1, 10, 100, '1,000' 1000, '10,000' 10000, '100,000' 100000)
    eval('set ytics '.times)
    set yrange [*:*]
    set key inside top left Left reverse
    set offsets graph 0, 0, graph 0.35, graph 0.05
    set ylabel ''
    set title 'locks that the process holds'
    set xlabel 'locks'
    plot file('held') using 1:2 with linespoints lt 1 pt 7 ps 0.5 title 'acquire and release one more', \
        '' using 1:4 with linespoints lt 5 pt 7 ps 0.5 title 'a heartbeat (CPU)'
    set title 'coroutines that wait for one lock'
    set xlabel 'waiters'
    plot file('waiters') using 1:2 with linespoints lt 5 pt 7 ps 0.5 title 'to ask', \
        '' using 1:3 with linespoints lt 1 pt 7 ps 0.5 title 'a turn'
    set title 'processes that contend, held 500 µs'
    set xlabel 'processes'
    set xtics (1, 2, 4, 8, 16, 32, 64)
    plot file('processes') using 1:6 with linespoints lt 1 pt 7 ps 0.5 title 'CPU per acquisition', \
        '' using 1:4 with linespoints lt 6 pt 7 ps 0.5 title 'wake-up', \
        '' using 1:7 with linespoints lt 2 pt 7 ps 0.5 title 'CPU, flock(2)', \
        '' using 1:5 with linespoints lt 3 pt 7 ps 0.5 title 'wake-up, flock(2)'
    set title 'entries of the directory'
    set xlabel 'entries'
    set xtics (1, 10, 100, '1,000' 1000, '10,000' 10000, '100,000' 100000)
    plot file('entries') using 1:3 with linespoints lt 1 pt 7 ps 0.5 title 'acquire and release', \
        '' using 1:2 with linespoints lt 2 pt 7 ps 0.5 title 'the six bare calls'
    unset multiplot
}
