# Completion of fslock(1) for bash.

_fslock() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} options=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W 'run wait status break sweep doctor --help --version' -- "$word")
        return
    fi
    case $command in
        run) options='--timeout --no-wait --conflict-exit-code --quiet --label --on-lost --kill-after --durable --mode --heartbeat --foreign-stale-after --verbose' ;;
        wait) options='--timeout --no-wait --conflict-exit-code --quiet' ;;
        status) options='--json' ;;
        break) options='--epoch' ;;
        sweep) options='--dry-run --depth --domain --temp-hours --other-filesystems --verbose' ;;
    esac
    case $previous in
        --on-lost) mapfile -t COMPREPLY < <(compgen -W 'kill warn' -- "$word") ;;
        --epoch)
            # What the lock shows now.
            mapfile -t COMPREPLY < <(compgen -W "$(fslock status "${COMP_WORDS[2]}" 2>/dev/null |
                sed -n 's/^  epoch *//p')" -- "$word")
            ;;
        --timeout | --conflict-exit-code | --kill-after | --label | --depth | --temp-hours) ;;
        *)
            case $word in
                -*) mapfile -t COMPREPLY < <(compgen -W "$options --help" -- "$word") ;;
                *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
            esac
            ;;
    esac
}

complete -o filenames -F _fslock fslock
