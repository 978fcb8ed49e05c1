package fumehood.command

test_git_place_a_folder_of_the_workspace if allowed("git -C pkg status") == {"git.read"}

test_git_place_its_hooks if denied("git merge-file .git/hooks/pre-commit a b") == {"git.place"}

test_git_place_credentials_in_configuration if denied("git config --get http.extraheader") == {"git.place"}
