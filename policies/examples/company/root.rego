# What a run begins with.
package fumehood.proposal

# METADATA
# title: Only images that the company has signed, except where nothing is known, as on one's own machine
# custom: {rule: acme.image}
deny contains {
	"rule": "acme.image",
	"message": "the root file system is not a signed image of the company",
	"suggestion": "set rootfs to an image of registry.acme.example with its digest",
} if {
	input.context.known
	not signed
}

signed if "release@acme.example" in input.context.image.signers
