#compdef gpumem-report
# Zsh completion of gpumem-report. Commands, options and their values are what --help says, asked when the
# key is pressed: there is nothing here to keep in step.

# The values that an option's line of --help names, as in "--color WHEN    auto, always or never".
_gpumem_report_values() {
	local text=$1
	text=${text%%\(*} text=${text#*: } text=${text// or /, } text=${text% only}
	text=${text% }
	[[ $text =~ '^[a-z-]+(, [a-z-]+)*$' ]] && print -r -- ${text//,/}
}

_gpumem_report() {
	local tool=${words[1]} command=${words[2]} previous=${words[CURRENT-1]} line help values
	local -a list
	if (( CURRENT == 2 )); then
		for line in ${(f)"$($tool --help 2> /dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  *\(.*\)/\1:\2/p')"}; do
			list+=($line)
		done
		_describe -t commands command list
		_files
		return
	fi
	if [[ $command == run ]] && (( ${words[(I)--]} && ${words[(I)--]} < CURRENT )); then
		shift ${words[(I)--]} words
		(( CURRENT -= ${words[(I)--]} ))
		_normal
		return
	fi
	help=$($tool $command --help 2> /dev/null)
	if [[ $previous == --format ]]; then
		values=$(sed -n '/^Formats:/,/^$/s/^  \([a-z-]*\) .*/\1/p' <<< $help)
	elif [[ $previous == -* ]]; then
		line=$(grep -E -- "^  $previous [A-Za-z]" <<< $help)
		values=$(_gpumem_report_values "${line[32,-1]}")
	fi
	if [[ -n $values ]]; then
		compadd -- ${=values}
	elif [[ ${words[CURRENT]} == -* ]]; then
		for line in ${(f)"$(sed -n 's/^  \(-[^ ]*\)\( [A-Z|]*\)\{0,1\}  *\(.*\)/\1:\3/p' <<< $help)"}; do
			list+=($line)
		done
		list+=('--help:this list')
		_describe -t options option list
	else
		_files
	fi
}

if [[ $funcstack[1] == _gpumem-report ]]; then
	_gpumem_report "$@"
else
	compdef _gpumem_report gpumem-report
fi
