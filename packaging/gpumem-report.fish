# Fish completion of gpumem-report. Commands, options and their values are what --help says, asked when the
# key is pressed: there is nothing here to keep in step.

function __gpumem_report_commands
    gpumem-report --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  *\(.*\)/\1\t\2/p'
end

function __gpumem_report_options
    set -l words (commandline -opc)
    gpumem-report $words[2] --help 2>/dev/null | sed -n 's/^  \(-[^ ]*\)\( [A-Z|]*\)\{0,1\}  *\(.*\)/\1\t\3/p'
end

# The values of the option before the cursor, as in "--color WHEN    auto, always or never".
function __gpumem_report_values
    set -l words (commandline -opc)
    set -l help (gpumem-report $words[2] --help 2>/dev/null)
    if test "$words[-1]" = --format
        printf '%s\n' $help | sed -n '/^Formats:/,/^$/s/^  \([a-z-]*\)  *\(.*\)/\1\t\2/p'
        return
    end
    set -l text (printf '%s\n' $help | sed -n "s/^  $words[-1] [A-Z]* *//p" | sed 's/ *(.*//; s/^.*: //; s/ or /, /; s/ only$//')
    string match -qr '^[a-z-]+(, [a-z-]+)*$' -- "$text"; and string split ', ' -- $text
end

function __gpumem_report_takes_value
    set -l words (commandline -opc)
    string match -q -- '-*' $words[-1]; and test -n "$(__gpumem_report_values)"
end

complete -c gpumem-report -n '__fish_is_first_token' -a '(__gpumem_report_commands)'
complete -c gpumem-report -n 'not __fish_is_first_token; and string match -q -- "-*" (commandline -ct)' -f -a '(__gpumem_report_options)'
complete -c gpumem-report -n __gpumem_report_takes_value -f -a '(__gpumem_report_values)'
complete -c gpumem-report -n 'contains -- -- (commandline -opc)' -f -a '(__fish_complete_subcommand --fcs-skip=(math (contains -i -- -- (commandline -opc))))'
