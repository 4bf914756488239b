package oracle

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// withServers writes the sandbox's kubeconfig with further contexts, each with a server of its own, and returns the path.
func withServers(t *testing.T, servers map[string]string) string {
	t.Helper()
	data, err := os.ReadFile(cluster.Kubeconfig(t))
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(data, &config))
	for name, server := range servers {
		config["clusters"] = append(config["clusters"].([]any), map[string]any{"name": name, "cluster": map[string]any{"server": server}})
		config["contexts"] = append(config["contexts"].([]any), map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": ""}})
	}
	data, err = yaml.Marshal(config)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestAnyctl_SeveralContexts(t *testing.T) {
	o := newPrograms(t)
	o.fixtures = client.NewNamespace(t, o.client)
	o.apply(t, o.fixtures, whereObjects)
	kubeconfig := " -n $NS --kubeconfig=" + withServers(t, map[string]string{"dead": "https://127.0.0.1:1"})
	const refused = `context dead: The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port\?\n`
	for _, c := range []struct {
		line, stdout, stderr string
		fails                bool
	}{
		{"get cm red blue --contexts admin,token", `^CONTEXT +NAME +DATA +AGE\nadmin +red +1 +\S+\nadmin +blue +1 +\S+\ntoken +red +1 +\S+\ntoken +blue +1 +\S+\n$`, `^$`, false},
		{"get cm red --contexts dead,token", `^CONTEXT +NAME +DATA +AGE\ntoken +red +1 +\S+\n$`, "^" + refused + "$", true},
		{"get cm --contexts admin,limited", `(admin +\S+ +1 +\S+\n){3}`, `^context limited: Error from server \(Forbidden\): configmaps is forbidden`, true},
		{"get cm red --contexts=admin,none", `admin +red`, `^context none: Error in configuration: .*none`, true},
		{"get cm/red deploy/large --contexts=admin --no-headers", `^admin +configmap/red +1 +\S+\nadmin +deployment\.apps/large`, `^$`, false},
		{"get cm -A -l app=web --contexts=admin --where '.data.color == \"red\"'", `^CONTEXT +NAMESPACE +NAME +DATA +AGE\nadmin +\S+ +red +1 +\S+\n$`, `^$`, false},
		{"get cm -l app=none --contexts=admin,token", `^$`, "^No resources found\n$", false},
		{"get cm none --contexts=admin", `^$`, `^context admin: Error from server \(NotFound\): configmaps "none" not found\n$`, true},
		{"get cm red blue --contexts=admin,token -o name", `^--context=admin configmap/red\n--context=admin configmap/blue\n--context=token configmap/red\n--context=token configmap/blue\n$`, `^$`, false},
		{"get cm red --contexts=admin,token -o json", `(?s)^{\n +"apiVersion": "v1",.*"anykind.dev/context": "admin".*"anykind.dev/context": "token".*"kind": "List"`, `^$`, false},
		{"get cm red --contexts=admin -o yaml", `(?s)^apiVersion: v1\nitems:\n- apiVersion: v1.*anykind.dev/context: admin.*kind: List`, `^$`, false},
		{"get cm red --contexts=admin,token -o jsonpath={.items[*].metadata.annotations}", `admin.*token`, `^$`, false},
		{"get cm red --contexts=admin,token -o custom-columns=NAME:.metadata.name", `^CONTEXT +NAME\nadmin +red\ntoken +red\n$`, `^$`, false},
		{"get cm red --contexts=admin,token -o wide", `^CONTEXT +NAME +DATA +AGE\nadmin +red`, `^$`, false},
		{"get cm red --contexts=dead,token -o name", `^--context=token configmap/red\n$`, "^" + refused + "$", true},
		{"get cm --contexts=dead -o json", `^$`, "^" + refused + "$", true},
		{"get cm,svc --contexts=admin -w", `^$`, `^context admin: error: --watch with --contexts needs objects of one resource type\n$`, true},
		{"get cm --contexts=admin --context=token", `^$`, `^error: --contexts is incompatible with --context`, true},
	} {
		r := o.anyctl.run(t, &oracleCase{line: c.line + kubeconfig}, o.fixtures, o.kubectl)
		assert.Equal(t, c.fails, r.code != 0, "%s: %s", c.line, r.stderr)
		assert.Regexp(t, c.stdout, r.stdout, c.line)
		assert.Regexp(t, c.stderr, r.stderr, c.line)
	}
}

// TestAnyctl_WatchSeveralContexts changes an object during a watch of two contexts and of one that cannot be reached.
func TestAnyctl_WatchSeveralContexts(t *testing.T) {
	o := newPrograms(t)
	o.fixtures = client.NewNamespace(t, o.client)
	o.apply(t, o.fixtures, whereObjects)
	kubeconfig := " -n $NS --kubeconfig=" + withServers(t, map[string]string{"dead": "https://127.0.0.1:1"})
	// first and later are texts of a row before and after the label has changed.
	for _, c := range []struct{ flags, turn, header, first, later string }{
		{" -L turn", "one", `^CONTEXT +NAME +DATA +AGE +TURN\n`, "red", "one"},
		{" -L turn --output-watch-events", "two", `^CONTEXT +EVENT +NAME +DATA +AGE +TURN\n`, "ADDED", "MODIFIED"},
		{" -o name", "three", `^--context=`, "configmap/red", "configmap/red"},
		{" -o custom-columns=TURN:.metadata.labels.turn", "four", `^CONTEXT +TURN\n`, "three", "four"},
	} {
		r := o.anyctl.run(t, &oracleCase{line: "get cm red -w --contexts admin,dead,token" + c.flags + kubeconfig, during: []step{
			{c.first, ""}, {c.first, "label cm red --overwrite turn=" + c.turn}, {c.later, ""}, {c.later, ""},
		}}, o.fixtures, o.kubectl)
		assert.Equal(t, 1, r.code, "the code after an interrupt; %s", c.flags)
		assert.Regexp(t, c.header, r.stdout)
		assert.LessOrEqual(t, strings.Count(r.stdout, "CONTEXT "), 1, "%s", r.stdout)
		for _, name := range []string{"admin", "token"} {
			assert.Len(t, regexp.MustCompile(`(?m)^(--context=)?`+name+` `).FindAllString(r.stdout, -1), 2, "%s", r.stdout)
		}
		assert.Regexp(t, `^context dead: The connection to the server 127.0.0.1:1 was refused`, r.stderr)
	}
}

// TestAnyctl_SilentCluster reads the rows of a cluster while another accepts connections and never responds.
func TestAnyctl_SilentCluster(t *testing.T) {
	o := newPrograms(t)
	o.fixtures = client.NewNamespace(t, o.client)
	o.apply(t, o.fixtures, whereObjects)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	kubeconfig := withServers(t, map[string]string{"silent": "https://" + listener.Addr().String()})
	cmd := o.anyctl.command(t.Context(), t, &oracleCase{line: "get cm red --request-timeout=3s --contexts silent,admin --no-headers --kubeconfig=" + kubeconfig + " -n $NS"}, o.fixtures)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	reader := bufio.NewReader(stdout)
	line, err := reader.ReadString('\n')
	require.NoError(t, err)
	assert.Regexp(t, `^admin +red +1 `, line)
	require.NoError(t, listener.Close()) // the kernel resets the waiting connection
	rest, err := io.ReadAll(reader)
	require.NoError(t, err)
	assert.Empty(t, rest)
	require.Error(t, cmd.Wait())
	assert.Equal(t, 1, cmd.ProcessState.ExitCode())
	assert.Regexp(t, `^context silent: `, stderr.String())
}
