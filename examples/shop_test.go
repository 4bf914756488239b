package examples_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience bounds the wait for the output of a program, on a busy machine.
const patience = time.Minute

// output collects the output of a program and closes seen once it matches wants.
type output struct {
	wants *regexp.Regexp
	seen  chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if o.wants.Match(o.text.Bytes()) {
		o.once.Do(func() { close(o.seen) })
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// shopCommands are the command lines of the programs, and the output that shows the point of each on the shop of apitest -controllers.
// FOLDER is an empty folder, and MANIFESTS a folder with a manifest.
var shopCommands = map[string]string{
	"api-resources":                 `deployments +deploy`,
	"autodetect":                    `default/web-\S+ Running`,
	"backup save FOLDER default":    `saving Deployment web`,
	"contexts":                      `apitest +v1`,
	"deploy web MANIFESTS":          `created ConfigMap "default/a"`,
	"deployment-notifier":           `canary: canary changed from shop/web:\d+ to shop/web:\d+`,
	"drain node-1":                  `node node-1: [1-9]\d* pods evicted`,
	"explain deployments":           `KIND: +Deployment`,
	"generic":                       `deleted baz`,
	"get deploy,sts":                `statefulset.apps/db +1/1`,
	"gitops -folder MANIFESTS":      `created ConfigMap "default/a"`,
	"informer":                      `default/web-\S+ is one of [2-9] on node-1`,
	"inventory -listen 127.0.0.1:0": `serving on 127.0.0.1:\d+`,
	"neat":                          `(?s)^---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n$`,
	"operator":                      `reconciled Greeting default/first`,
	"paths":                         `deployment paths-nginx: .*replicas 3`,
	"pod exec db-0 hostname":        `db-0: hostname`,
	"quickstart":                    `web shop/web:1 <nil>`,
	"reflector":                     `ADDED web-`,
	"rollout web":                   `(?s)it is InProgress: .*done\n`,
	"sharded":                       `reconciled Greeting default/first`,
	"shopctl get deploy":            `web +2/2`,
	"stern ^web-":                   `default/web-\S+/web: GET /prices 200`,
	"tour":                          `deleted customresourcedefinitions`,
	"tree deploy/web":               `─Pod/web-\S+ +Current`,
}

// TestExamples_ShowTheirPoint runs each program on a server of its own until its output shows the point.
func TestExamples_ShowTheirPoint(t *testing.T) {
	if os.Getenv("ANYKIND_REQUIRE_SANDBOX") == "" {
		t.Skip("it builds programs of several modules, which needs the workspace: make test runs it")
	}
	folder := buildExamples(t)
	build(t, folder, "../cli/examples", "./...")
	build(t, folder, "../apitest", "./cmd/apitest")
	manifests := t.TempDir()
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	require.NoError(t, os.WriteFile(filepath.Join(manifests, "a.yaml"), []byte(manifest), 0o600))
	untested := map[string]bool{}
	for _, pattern := range []string{"*/main.go", "../cli/examples/*/main.go"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			untested[filepath.Base(filepath.Dir(path))] = true
		}
	}
	for line := range shopCommands {
		name, _, _ := strings.Cut(line, " ")
		assert.True(t, untested[name], "there is no program %s", name)
		delete(untested, name)
	}
	assert.Empty(t, untested, "shopCommands lacks programs")
	for line, wants := range shopCommands {
		name, _, _ := strings.Cut(line, " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			words := strings.Fields(strings.NewReplacer("MANIFESTS", manifests, "FOLDER", t.TempDir()).Replace(line))
			words[0] = filepath.Join(folder, words[0])
			cmd := exec.CommandContext(ctx, filepath.Join(folder, "apitest"), append([]string{"-hide-warnings", "-controllers", "exec", "--"}, words...)...)
			out := &output{wants: regexp.MustCompile(wants), seen: make(chan struct{})}
			cmd.Stdin = strings.NewReader(strings.Replace(manifest, "}", ", uid: a-uid}", 1)) // of neat
			cmd.Stdout = out
			cmd.Stderr = out
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
			began := time.Now()
			require.NoError(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-out.seen:
				t.Logf("shown after %s", time.Since(began).Round(time.Second/10))
				cancel()
				<-ended //nolint:errcheck // the interrupt may be its error
			case err := <-ended:
				require.NoError(t, err, out)
				assert.Regexp(t, wants, out.String())
			}
		})
	}
}
