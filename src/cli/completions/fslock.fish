# Completion of fslock(1) for fish.

set -l commands run wait status break sweep doctor
complete -c fslock -n "not __fish_seen_subcommand_from $commands" -f
complete -c fslock -n "not __fish_seen_subcommand_from $commands" -s V -l version -d 'Say which version it is'
complete -c fslock -s h -l help -d 'Say how to use it'
complete -c fslock -n "not __fish_seen_subcommand_from $commands" -a run -d 'Run a command under a lock'
complete -c fslock -n "not __fish_seen_subcommand_from $commands" -a wait -d 'Wait until nobody has a lock'
complete -c fslock -n "not __fish_seen_subcommand_from $commands" -a status -d 'Show who has a lock'
complete -c fslock -n "not __fish_seen_subcommand_from $commands" -a break -d 'Take a lock from an owner that hangs'
complete -c fslock -n "not __fish_seen_subcommand_from $commands" -a sweep -d 'Remove what dead processes left'
complete -c fslock -n "not __fish_seen_subcommand_from $commands" -a doctor -d 'Say what locks can rely on'

complete -c fslock -n '__fish_seen_subcommand_from run wait' -s w -l timeout -x -d 'Give up after so many seconds'
complete -c fslock -n '__fish_seen_subcommand_from run wait' -s n -l no-wait -d 'Give up at once'
complete -c fslock -n '__fish_seen_subcommand_from run wait' -s E -l conflict-exit-code -x -d 'Exit with this when giving up'
complete -c fslock -n '__fish_seen_subcommand_from run wait' -s q -l quiet -d 'Do not say for whom it waits'
complete -c fslock -n '__fish_seen_subcommand_from run' -l label -x -d 'What status shows of the owner'
complete -c fslock -n '__fish_seen_subcommand_from run' -l on-lost -x -a 'kill warn' -d 'When the lock is lost'
complete -c fslock -n '__fish_seen_subcommand_from run' -l kill-after -x -d 'Seconds between SIGTERM and SIGKILL'
complete -c fslock -n '__fish_seen_subcommand_from run' -l durable -d 'Sync the record'
complete -c fslock -n '__fish_seen_subcommand_from run sweep' -s v -l verbose -d 'Say more'
complete -c fslock -n '__fish_seen_subcommand_from status' -l json -d 'For programs'
complete -c fslock -n '__fish_seen_subcommand_from break' -l epoch -x -d 'The epoch that status shows'
complete -c fslock -n '__fish_seen_subcommand_from sweep' -l dry-run -d 'Remove nothing'
complete -c fslock -n '__fish_seen_subcommand_from sweep' -l depth -x -d 'Levels of directories'
complete -c fslock -n '__fish_seen_subcommand_from sweep' -l domain -r -d 'Only there'
complete -c fslock -n '__fish_seen_subcommand_from sweep' -l temp-hours -x -d 'How old a temp has to be'
complete -c fslock -n '__fish_seen_subcommand_from sweep' -l other-filesystems -d 'Go on into other filesystems'
