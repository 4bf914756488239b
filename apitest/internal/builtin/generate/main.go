// Command generate records the Go types of the built-in kinds of a Kubernetes version in types.txt.gz, for package builtin:
//
//	go run ./internal/builtin/generate -version 0.36.3 -o internal/builtin/types.txt.gz
package main

import (
	_ "embed"

	"github.com/anykind/anykind/apitest/internal/kindrecord"
)

//go:embed types.go.txt
var program []byte

func main() { kindrecord.Main(program, "types.txt.gz") }
