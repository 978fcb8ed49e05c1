package fumehood.command

test_sed_awk_lines if allowed("sed -n '1,20p' x") == {"text.judged"}

test_sed_awk_a_sum if allowed("awk '{n += $1} END {print n}' x") == {"text.judged"}

test_sed_awk_a_program_of_sed if denied("sed '1e id' x") == {"sed.script"}

test_sed_awk_a_program_of_awk if denied("awk 'BEGIN{system(\"id\")}'") == {"awk.script"}

test_sed_awk_an_edit_elsewhere if denied("sed -i s/a/b/ .git/config") == {"sed.place"}

test_sed_awk_files_by_awk if denied("awk '{ARGC=3}' x") == {"awk.argv"}
