package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// runTimeout bounds one program. It is long: the machine may be busy.
const runTimeout = 5 * time.Minute

// program is kubectl or anyctl.
type program struct {
	path string
	home string // with the discovery cache
	// kubeconfig is the sandbox's.
	kubeconfig string
	kubectl    string // the path of kubectl
}

// minor returns the minor version of kubectl.
func (p *program) minor(t *testing.T) int {
	t.Helper()
	r := p.run(t, &oracleCase{line: "version --client -o json"}, "", nil)
	var output struct {
		ClientVersion struct{ Minor string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &output), r.stderr)
	minor, err := strconv.Atoi(output.ClientVersion.Minor)
	require.NoError(t, err)
	return minor
}

// result is the effect of a run.
type result struct {
	stdout, stderr string
	code           int
	effect         string
}

// run runs the line of a case in a namespace.
func (p *program) run(t *testing.T, c *oracleCase, namespace string, kubectl *program) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cmd := p.command(ctx, t, c, namespace)
	stdout := newSignalBuffer()
	stderr := newSignalBuffer()
	cmd.Stdin = strings.NewReader(c.stdin)
	cmd.Stdout = stdout
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	for _, step := range c.during {
		if !stdout.waitFor(ctx, step.waitFor) {
			t.Errorf("%s %s: no %q in the output:\n%s%s", filepath.Base(p.path), c.line, step.waitFor, stdout, stderr)
			break
		}
		if step.kubectl != "" {
			kubectl.simple(t, step.kubectl, namespace)
		}
	}
	if len(c.during) > 0 && !c.endsAlone {
		_ = cmd.Process.Signal(os.Interrupt)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", cmd, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s: still running after %v:\n%s%s", cmd, runTimeout, stdout, stderr)
	}
	r := result{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
	for _, name := range c.kubeconfigs {
		r.effect += readKubeconfig(t, filepath.Join(cmd.Dir, strings.ReplaceAll(name, "$KUBECONFIG", runKubeconfig)))
	}
	for _, text := range []*string{&r.stdout, &r.stderr, &r.effect} {
		*text = strings.ReplaceAll(*text, cmd.Dir, "/DIR")
	}
	return r
}

// simple runs a line and requires exit code 0.
func (p *program) simple(t *testing.T, line, namespace string) {
	t.Helper()
	r := p.run(t, &oracleCase{line: line}, namespace, nil)
	require.Zero(t, r.code, "%s: %s", line, r.stderr)
}

func (p *program) command(ctx context.Context, t *testing.T, c *oracleCase, namespace string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	for name, content := range c.files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(content, "$NS", namespace)), 0o600))
	}
	kubeconfig := filepath.Join(dir, runKubeconfig)
	data, err := os.ReadFile(p.kubeconfig)
	require.NoError(t, err)
	require.Contains(t, string(data), defaultNamespace, "the sandbox's kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, withNamespace(data, namespace), 0o600))
	args, err := splitLine(strings.ReplaceAll(c.line, "$NS", namespace))
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir = dir
	path := filepath.Dir(p.kubectl) + string(filepath.ListSeparator) + os.Getenv("PATH") // anyctl runs kubectl for -k
	cmd.Env = append([]string{
		"KUBECONFIG=" + kubeconfig, "HOME=" + p.home, "PATH=" + path, "TMPDIR=" + os.TempDir(),
	}, c.env...)
	return cmd
}

// runKubeconfig is the kubeconfig in the folder of a run.
const runKubeconfig = ".kubeconfig"

// readKubeconfig returns the entries of a kubeconfig as YAML, sorted and without comments.
func readKubeconfig(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "no file\n"
	}
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, yaml.Unmarshal(data, &fields))
	for _, list := range []string{"clusters", "users", "contexts"} {
		entries, _ := fields[list].([]any)
		slices.SortFunc(entries, func(a, b any) int { return strings.Compare(entryName(a), entryName(b)) })
	}
	written, err := yaml.Marshal(withoutEmpty(fields))
	require.NoError(t, err)
	return string(written)
}

func entryName(entry any) string {
	fields, _ := entry.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// withoutEmpty removes empty fields. kubectl and anyctl omit different empty fields.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			field = withoutEmpty(field)
			if value[name] = field; field == nil || field == "" || field == false {
				delete(value, name)
			}
		}
		if len(value) == 0 {
			return nil
		}
	case []any:
		for i := range value {
			value[i] = withoutEmpty(value[i])
		}
		if len(value) == 0 {
			return nil
		}
	}
	return value
}

// defaultNamespace is how the sandbox's kubeconfig ends each of its contexts.
const defaultNamespace = "namespace: default}"

// withNamespace sets the namespace of every context of the sandbox's kubeconfig.
func withNamespace(kubeconfig []byte, namespace string) []byte {
	return bytes.ReplaceAll(kubeconfig, []byte(defaultNamespace), []byte("namespace: "+namespace+"}"))
}

// splitLine splits a line at spaces outside of quotes. There are no escapes and no expansion.
func splitLine(line string) ([]string, error) {
	var args []string
	var current strings.Builder
	var quote rune
	started := false
	for _, char := range line {
		switch {
		case quote != 0 && char == quote:
			quote = 0
		case quote != 0:
			current.WriteRune(char)
		case char == '\'' || char == '"':
			quote = char
			started = true
		case char == ' ' && started:
			args = append(args, current.String())
			current.Reset()
			started = false
		case char != ' ':
			current.WriteRune(char)
			started = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("split %q: quote is not closed", line)
	}
	if started {
		args = append(args, current.String())
	}
	return args, nil
}

// signalBuffer is a buffer with waitFor.
type signalBuffer struct {
	mu      sync.Mutex
	buffer  bytes.Buffer
	changed chan struct{}
	// offset is the end of the last match of waitFor.
	offset int
}

func newSignalBuffer() *signalBuffer { return &signalBuffer{changed: make(chan struct{}, 1)} }

func (b *signalBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return b.buffer.Write(p)
}

func (b *signalBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// waitFor waits for text behind the previous match.
func (b *signalBuffer) waitFor(ctx context.Context, text string) bool {
	for {
		b.mu.Lock()
		at := strings.Index(b.buffer.String()[b.offset:], text)
		if at >= 0 {
			b.offset += at + len(text)
		}
		b.mu.Unlock()
		if at >= 0 {
			return true
		}
		select {
		case <-b.changed:
		case <-ctx.Done():
			return false
		}
	}
}
