package fumehood.exec

allow contains {"rule": "exec.rootfs"} if input.layer == "rootfs"
