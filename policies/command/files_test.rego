package fumehood.command

test_files_a_copy if allowed("cp a b") == {"files.change"}

test_files_a_system_folder if denied("touch /etc/x") == {"files.place"}

test_files_a_mode if denied("chmod u+s x") == {"files.mode"}

test_files_a_pattern_of_everything if denied("rm -rf *") == {"files.removed"}

test_files_output_of_a_reader if denied("sort -o /etc/x y") == {"option.place"}

test_files_last_operand if denied("uniq a /etc/b") == {"operand.place"}

test_files_unpacking_elsewhere if denied("unzip x.zip -d /etc/x") == {"option.place"}

test_files_an_archive_of_elsewhere if denied("unzip -d out /etc/x.zip") == {"files.place"}

test_files_a_control_file if denied("cp a .npmrc") == {"files.place"}

test_files_a_target_folder if denied("cp -t/etc a") == {"option.place"}
