// Command generate records the Protobuf messages of the built-in kinds of a Kubernetes version in messages.txt.gz, for package
// protobuf:
//
//	go run ./internal/protobuf/generate -version 0.36.3 -o internal/protobuf/messages.txt.gz
package main

import (
	_ "embed"

	"github.com/anykind/anykind/apitest/internal/kindrecord"
)

//go:embed messages.go.txt
var program []byte

func main() { kindrecord.Main(program, "messages.txt.gz") }
