package apitest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

const kubectlNamespace = "kubectl"

// TestServer_KubectlEqualsRealServer runs the command lines of testdata/kubectl/lines.txt on the sandbox and on apitest.
func TestServer_KubectlEqualsRealServer(t *testing.T) {
	program := cluster.Kubectl(t)
	lines := readLines(t, "testdata/kubectl/lines.txt")
	server := apitest.NewServer(t, &apitest.Options{OnNotValidated: func(apitest.Request, string) {}})
	double := newKubectl(t, program, server.Kubeconfig(t))
	sandbox := newKubectl(t, program, cluster.Kubeconfig(t))
	t.Cleanup(func() { removeNamespace(t) })
	compared := 0
	equal := 0
	for _, line := range lines {
		line, onlyRuns := strings.CutPrefix(line, "? ")
		line, onlyStatus := strings.CutPrefix(line, "~ ")
		var want, got kubectlResult
		var both sync.WaitGroup
		both.Go(func() { want = sandbox.run(t, line) })
		both.Go(func() { got = double.run(t, line) })
		both.Wait()
		// A real server publishes the OpenAPI of new definitions some seconds later.
		for deadline := time.Now().Add(time.Minute); strings.HasPrefix(line, "explain ") && want != got && time.Now().Before(deadline); {
			time.Sleep(time.Second)
			want = sandbox.run(t, line)
		}
		if onlyRuns {
			assert.Zero(t, got.code, "kubectl %s: %s", line, got.output)
			continue
		}
		if onlyStatus {
			want.output = ""
			got.output = ""
		}
		compared++
		if assert.Equal(t, want, got, "kubectl %s", line) {
			equal++
		}
	}
	t.Logf("%d of %d command lines print the same", equal, compared)
}

func readLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// kubectl runs command lines on one server.
type kubectl struct {
	program string
	env     []string
	dir     string // for the files of the command lines
}

type kubectlResult struct {
	code   int
	output string
}

func newKubectl(t *testing.T, program, kubeconfig string) *kubectl {
	t.Helper()
	home := t.TempDir()
	editor := `sed -i 's/a: "1"/a: "7"/; s/replicas: 2/replicas: 6/'`
	return &kubectl{program: program, dir: home, env: []string{
		"KUBECONFIG=" + kubeconfig, "HOME=" + home, "KUBECACHEDIR=" + filepath.Join(home, "cache"), "KUBE_EDITOR=" + editor,
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + home,
	}}
}

// run runs a command line and returns its output without server-specific values.
func (k *kubectl) run(t *testing.T, line string) kubectlResult {
	t.Helper()
	args, err := k.arguments(t.Context(), line)
	if err != nil {
		return kubectlResult{-1, err.Error()}
	}
	output, code := k.execute(t.Context(), args...)
	return kubectlResult{code, k.normalize(output)}
}

func (k *kubectl) execute(ctx context.Context, args ...string) (output string, code int) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.program, append([]string{"--namespace=" + kubectlNamespace}, args...)...)
	cmd.Env = k.env
	var both bytes.Buffer
	cmd.Stdout = &both
	cmd.Stderr = &both
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		return err.Error(), -1
	}
	return both.String(), code
}

var quoted = regexp.MustCompile(`(?:[^\s']|'[^']*')+`)

// arguments splits a command line at spaces outside of single quotes, and writes its files.
func (k *kubectl) arguments(ctx context.Context, line string) ([]string, error) {
	var args []string
	for _, arg := range quoted.FindAllString(line, -1) {
		arg = strings.ReplaceAll(arg, "'", "")
		if name, isFile := strings.CutPrefix(arg, "@"); isFile {
			path, err := k.writeFile(ctx, name)
			if err != nil {
				return nil, err
			}
			arg = path
		}
		args = append(args, arg)
	}
	return args, nil
}

var uidReference = regexp.MustCompile(`\$\{uid (\S+)\}`)

// writeFile copies a file and replaces references to UIDs such as ${uid deployments/api}.
func (k *kubectl) writeFile(ctx context.Context, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join("testdata", "kubectl", name))
	if err != nil {
		return "", err
	}
	text = uidReference.ReplaceAllFunc(text, func(reference []byte) []byte {
		resource := uidReference.FindSubmatch(reference)[1]
		output, _ := k.execute(ctx, "get", string(resource), "-o", "jsonpath={.metadata.uid}")
		return []byte(output)
	})
	path := filepath.Join(k.dir, name)
	return path, os.WriteFile(path, text, 0o600)
}

// variables are the texts that differ between two servers.
var variables = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4})`), "TIME"},
	{regexp.MustCompile(`[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}`), "TIME"},
	{regexp.MustCompile(`(resourceVersion"?: ?)"\d+"`), `$1"REVISION"`},
	{regexp.MustCompile(`(Resource Version: +)\d+`), "${1}REVISION"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "IP"},
	{regexp.MustCompile(`https://127\.0\.0\.1:\d+`), "SERVER"},
	{regexp.MustCompile(`(LIVE|MERGED)-\d+`), "$1"},
	{regexp.MustCompile(`kubectl-edit-\d+`), "kubectl-edit"},
	{regexp.MustCompile(`\b(\d+[dhm])?\d+[smhd]\b`), "AGE"},
	{regexp.MustCompile(`"continue":"[^"]*"`), `"continue":"TOKEN"`},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
	{regexp.MustCompile(`[ \t]{2,}|\t`), "  "},
	// A real server may repair the IP of a service that was just created.
	{regexp.MustCompile(`Events:\n.*\n.*\n  Warning  ClusterIPNotAllocated.*\n`), "Events:  <none>\n"},
}

func (k *kubectl) normalize(output string) string {
	output = strings.ReplaceAll(output, k.dir, "DIR")
	for _, v := range variables {
		output = v.pattern.ReplaceAllString(output, v.replacement)
	}
	return sortCauses(output)
}

// sortCauses sorts causes: the real server returns them in random order.
func sortCauses(output string) string {
	lines := strings.Split(output, "\n")
	for start := 0; start < len(lines); start++ {
		end := start
		for end < len(lines) && strings.HasPrefix(lines[end], "* ") {
			end++
		}
		slices.Sort(lines[start:end])
		start = max(start, end)
	}
	return strings.Join(lines, "\n")
}

// removeNamespace removes the sandbox's namespace. The sandbox has no namespace controller.
func removeNamespace(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	defer conn.Close()
	path := "/api/v1/namespaces/" + kubectlNamespace
	for _, req := range []*transport.Request{
		{Method: http.MethodDelete, Path: path},
		{
			Method: http.MethodPut, Path: path + "/finalize", Header: http.Header{"Content-Type": {"application/json"}},
			Body: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q},"spec":{"finalizers":[]}}`, kubectlNamespace),
		},
	} {
		response, err := conn.Do(ctx, req)
		if assert.NoError(t, err) {
			assert.NoError(t, response.Body.Close())
		}
	}
}
