# Bash completion of gpumem-report. Commands, options and their values are what --help says, asked when
# the key is pressed: there is nothing here to keep in step.

# The values that an option's line of --help names, as in "--color WHEN    auto, always or never".
_gpumem_report_values() {
	local text=$1
	text=${text%%(*} text=${text#*: } text=${text// or /, } text=${text% only}
	# a sentence is no list of values
	[[ $text =~ ^[a-z-]+(,\ [a-z-]+)*\ *$ ]] && echo "${text//,/}"
}

_gpumem_report() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local tool=${COMP_WORDS[0]} command=${COMP_WORDS[1]} help line options
	COMPREPLY=()
	# bash splits --option=value at the sign
	[ "$current" = = ] && current=
	[ "$previous" = = ] && previous=${COMP_WORDS[COMP_CWORD - 2]}

	if [ "$COMP_CWORD" -eq 1 ]; then
		help=$("$tool" --help 2> /dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
		mapfile -t COMPREPLY < <(compgen -W "$help --help --version" -- "$current"; compgen -f -- "$current")
		compopt -o filenames 2> /dev/null
		return
	fi
	if [ "$command" = run ]; then
		local i
		for ((i = 2; i < COMP_CWORD; i++)); do
			if [ "${COMP_WORDS[i]}" = -- ]; then
				declare -F _command_offset > /dev/null && _command_offset $((i + 1))
				return
			fi
		done
	fi
	help=$("$tool" "$command" --help 2> /dev/null)
	if [[ $previous == --format ]]; then
		options=$(sed -n '/^Formats:/,/^$/s/^  \([a-z-]*\) .*/\1/p' <<< "$help")
	elif [[ $previous == -* ]]; then
		line=$(grep -E -- "^  $previous [A-Za-z]" <<< "$help")
		options=$(_gpumem_report_values "${line:31}")
	fi
	if [ -n "$options" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
	elif [[ $current == -* ]]; then
		options=$(sed -n 's/^  \(-[^ ]*\) .*/\1/p' <<< "$help")
		mapfile -t COMPREPLY < <(compgen -W "$options --help" -- "$current")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		compopt -o filenames 2> /dev/null
	fi
}
complete -F _gpumem_report gpumem-report
