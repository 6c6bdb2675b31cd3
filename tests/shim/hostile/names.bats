#!/usr/bin/env bats
# Names that a program has from its data, in every text that the report makes.

load ../helpers

@test "names of marks, modules and symbols with line feeds, controls, directions, commands, formulas" {
	cd "$work"
	local plugin=$'p\n::error file=app.py,line=1::forged\nNext: forged\e[31m.so'
	cp "$HOSTILE/names_plugin.so" "$plugin"
	traced "$HOSTILE/names" "./$plugin"
	python3 "$BATS_TEST_DIRNAME/names.py" "$REPORT" out.gmt .
	# the file's own name, and the names of other files in messages
	cp out.gmt $'a\n::error::forged.gmt'
	printf 'nothing' > $'b\n::error::forged.gmt'
	for file in ?$'\n::error::forged.gmt'; do
		"$REPORT" summary "$file" > texts 2>&1 || true
		"$REPORT" check --leaks exit "$file" >> texts 2>&1 || true
		"$REPORT" summary "$file.no" >> texts 2>&1 || true
		"$REPORT" summary "--$file" >> texts 2>&1 || true
		! grep -nE '^[[:space:]]*::' texts
	done
}

@test "the same of Python's functions and files" {
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' || skip "no Python that frames are read of"
	cat > "$work/program.py" <<-'PY'
		import ctypes, sys, types
		cuda = ctypes.CDLL("libcudart.so.13")
		def allocate():
		    cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))
		for name, file in (("f\n::error::forged", "::warning::z.py"), ("a;b 5\nfake;line 9", "x\n.py"), ("\u009bm", "\u202egpj.py"),
		                   ("##[error]x", "##[error].py"), ("=1+1", "=1.py"), ("</script><svg onload=alert(1)>", "<img>.py")):
		    code = {"co_name": name, "co_filename": file}
		    if sys.version_info >= (3, 11):
		        code["co_qualname"] = name
		    types.FunctionType(allocate.__code__.replace(**code), globals())()
		mark = ctypes.CDLL(None).gpumemtrace_mark
		for name in ("step\n::error file=app.py,line=1::forged", "\x1b]0;title\x07", "\u200fright", "=1+1", "plain ä € 漢 🚀"):
		    mark(name.encode())
	PY
	traced python3 "$work/program.py"
	python3 "$BATS_TEST_DIRNAME/names.py" "$REPORT" "$work/out.gmt" "$work"
	"$REPORT" html -o "$work/page" "$work/out.gmt"
	! grep -q '<svg onload\|<img>' "$work/page"
}
