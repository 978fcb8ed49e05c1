module github.com/fumehood/fumehood/internal/egress/secrets/generate

go 1.26.3

require github.com/pelletier/go-toml/v2 v2.2.3
