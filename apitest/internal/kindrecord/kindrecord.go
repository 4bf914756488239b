// Package kindrecord runs programs to record data of the Go types of Kubernetes' built-in kinds. Programs are compiled in a
// temporary module, so that this module does not require k8s.io/api.
package kindrecord

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Main is the main function of a recording command. It runs a program and writes its compressed output to a file.
func Main(program []byte, defaultOutput string) {
	version := flag.String("version", "0.36.3", "version of k8s.io/api")
	output := flag.String("o", defaultOutput, "the file to write")
	flag.Parse()
	text, err := run(program, *version)
	if err == nil {
		err = write(*output, text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run returns the output of a program. The program may import the modules of a Kubernetes version.
func run(program []byte, version string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "kindrecord")
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

func write(name string, text []byte) error {
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, compressed.Bytes(), 0o644) //nolint:gosec // committed
}
