// Command record runs a session of anyctl on the cluster of KUBECONFIG and writes it to a page of docs, as text, and to an SVG.
// See `make record`.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

// manifest is the file of the session.
const manifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec: {selector: {app: web}, ports: [{port: 80}]}
`

// session is the command lines of the session. Only the last command may fail.
var session = [][]string{
	{"apply", "-f", "shop.yaml"},
	{"rollout", "status", "deploy/web"},
	{"get", "deploy,svc,pods"},
	{"set", "deploy/web", "spec.replicas=3", "spec.template.spec.containers[name=web].image=example.com/web:2"},
	{"wait", "deploy/web", "--for=ready"},
	{"get", "pods", "--where", `.spec.containers[0].image | endswith(":2")`, "-o", `jq=.metadata.name + " on " + .spec.nodeName`},
	{"tree", "deploy/web"},
	{"get", "svc", "web", "-o", "yaml", "--neat"},
	{"get", "deploymnt"},
}

// docs/CLI.md has the text between these lines.
const (
	startMark = "<!-- anyctl: recorded by make record -->"
	endMark   = "<!-- anyctl: end -->"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	anyctl := flag.String("anyctl", "", "the program to run")
	text := flag.String("text", "", "the file with the text of the session")
	picture := flag.String("svg", "", "the SVG to write")
	flag.Parse()
	if err := run(ctx, *anyctl, *text, *picture); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, anyctl, text, picture string) error {
	anyctl, err := filepath.Abs(anyctl)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "anyctl-record-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(manifest), 0o600); err != nil {
		return err
	}
	recorded, err := record(ctx, anyctl, dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(picture, svg(recorded), 0o644); err != nil { //nolint:gosec // everybody may read it
		return err
	}
	return replaceText(text, plain(recorded))
}

// record runs the session and returns the command lines and their outputs, with terminal colours.
func record(ctx context.Context, anyctl, dir string) (string, error) {
	var recorded strings.Builder
	for i, args := range session {
		command := exec.CommandContext(ctx, anyctl, colored(args)...)
		command.Dir = dir
		command.Env = append(os.Environ(), "HOME="+dir)
		output, err := command.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && (i < len(session)-1 || !errors.As(err, &exit)) {
			return "", fmt.Errorf("%s: %w\n%s", command, err, output)
		}
		fmt.Fprintf(&recorded, "\x1b[1m$ anyctl %s\x1b[0m\n%s", shellLine(args), output)
		if i < len(session)-1 {
			recorded.WriteByte('\n')
		}
	}
	return recorded.String(), nil
}

// colored adds --color=always to a command line with a table as output.
func colored(args []string) []string {
	if args[0] != "get" || strings.Contains(strings.Join(args, " "), "-o") {
		return args
	}
	return append(append([]string{}, args...), "--color=always")
}

func shellLine(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		if quoted[i] = arg; strings.ContainsAny(arg, " []()|\"\\$") {
			quoted[i] = "'" + arg + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func replaceText(path, text string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(data, []byte(startMark+"\n"))
	_, after, foundEnd := bytes.Cut(rest, []byte(endMark))
	if !found || !foundEnd {
		return fmt.Errorf("%s: no lines %s and %s", path, startMark, endMark)
	}
	var changed bytes.Buffer
	fmt.Fprintf(&changed, "%s%s\n```console\n%s```\n%s%s", before, startMark, text, endMark, after)
	return os.WriteFile(path, changed.Bytes(), 0o644) //nolint:gosec // everybody may read it
}
