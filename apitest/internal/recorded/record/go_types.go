package main

import (
	"bytes"
	_ "embed" // types.go.txt, messages.go.txt
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// typesProgram prints the Go types of the built-in kinds, for package builtin.
//
//go:embed types.go.txt
var typesProgram []byte

// messagesProgram prints the Protobuf messages of the built-in kinds, for package protobuf.
//
//go:embed messages.go.txt
var messagesProgram []byte

// recordGoTypes records data of the Go types of the built-in kinds. gitVersion is the server's, such as v1.36.3.
func recordGoTypes(gitVersion string) error {
	version := strings.Replace(gitVersion, "v1.", "0.", 1)
	for _, one := range []struct {
		file    string
		program []byte
	}{{"types.txt.gz", typesProgram}, {"messages.txt.gz", messagesProgram}} {
		text, err := runProgram(one.program, version)
		if err != nil {
			return fmt.Errorf("record %s: %w", one.file, err)
		}
		if err := (&lines{buf: *bytes.NewBuffer(text)}).writeCompressed(one.file); err != nil {
			return err
		}
	}
	return nil
}

// runProgram returns the output of a program. The program may import the modules of a Kubernetes version. It is compiled in a
// temporary module, so that apitest does not require k8s.io/api.
func runProgram(program []byte, version string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "record")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	module := "module record\n\ngo 1.26.0\n\nrequire (\n"
	for _, name := range []string{"apiextensions-apiserver", "apimachinery", "client-go", "kube-aggregator"} {
		module += fmt.Sprintf("\tk8s.io/%s v%s\n", name, version)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module+")\n"), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), program, 0o600); err != nil {
		return nil, err
	}
	var output bytes.Buffer
	for _, args := range [][]string{{"mod", "tidy"}, {"run", "."}} {
		output.Reset()
		command := exec.Command("go", args...)
		command.Dir = dir
		command.Stdout = &output
		command.Stderr = os.Stderr
		if err := command.Run(); err != nil {
			return nil, fmt.Errorf("go %s: %w", args[0], err)
		}
	}
	return output.Bytes(), nil
}
