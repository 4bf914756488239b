module github.com/anykind/anykind/dev/suites

go 1.26.0

require go.uber.org/goleak v1.3.0

require (
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
