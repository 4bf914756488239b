package client

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

// Program builds the program in the test's folder. The returned function runs it as the sandbox's admin in a namespace and returns
// its standard output. The error of a failed program has its standard error. The end of ctx interrupts the program.
func Program(t testing.TB, namespace string) func(ctx context.Context, stdin string, args ...string) (string, error) {
	t.Helper()
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, output)
	}
	path := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(cluster.Kubeconfig(t), path, namespace); err != nil {
		t.Fatalf("write a kubeconfig: %v", err)
	}
	return func(ctx context.Context, stdin string, args ...string) (string, error) {
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+path, "KUBECACHEDIR="+folder)
		cmd.Stdin = strings.NewReader(stdin)
		cmd.Stdout = &stdout
		cmd.Stderr = &stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		err := cmd.Run()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, stderr.String())
		}
		return stdout.String(), err
	}
}

// writeKubeconfig copies a kubeconfig, with the context admin in a namespace as the current context.
func writeKubeconfig(from, to, namespace string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	document, err := edit.Parse(data, filepath.Dir(from))
	if err != nil {
		return err
	}
	file, err := document.File()
	if err != nil {
		return err
	}
	admin := file.Contexts["admin"]
	admin.Namespace = namespace
	file.Contexts["admin"] = admin
	if err := document.Put(file); err != nil {
		return err
	}
	document.SetCurrentContext("admin")
	changed, err := document.Bytes()
	if err != nil {
		return err
	}
	return os.WriteFile(to, changed, 0o600)
}
