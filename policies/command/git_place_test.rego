package fumehood.command

test_git_place_a_folder_of_the_workspace if allowed("git -C pkg status") == {"git.read"}

test_git_place_another_repository if denied("git -C ../other log") == {"git.place"}

test_git_place_credentials_in_configuration if denied("git config --get http.extraheader") == {"git.place"}
