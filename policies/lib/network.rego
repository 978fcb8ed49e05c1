package fumehood.lib

# metadata_names and metadata_addresses are those of cloud metadata services, which hand
# out credentials.
metadata_names := {
	"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal", "metadata.azure.com", "metadata.azure.internal",
	"metadata.platformequinix.com", "metadata.packet.net", "metadata.oraclecloud.com", "metadata.tencentyun.com", "metadata.service.consul", "rancher-metadata",
}

metadata_addresses := {
	"169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254",
	"fd00:ec2::23", "fd20:ce::254",
}
