module sagabench/deploy/schemas

go 1.26.0

require (
	github.com/compose-spec/compose-go/v2 v2.10.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5
	k8s.io/cli-runtime v0.34.2
)

require golang.org/x/text v0.42.0 // indirect
