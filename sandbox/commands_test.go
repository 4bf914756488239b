//go:build unix

package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/sandbox/cluster"
	"github.com/anykind/anykind/sandbox/internal/build"
	"github.com/anykind/anykind/sandbox/internal/filelock"
)

func TestCommands_ExplainWrongUse(t *testing.T) {
	t.Setenv(build.CacheEnv, t.TempDir())
	for args, want := range map[string]string{
		"":                                    "Usage: go run -C sandbox . COMMAND",
		"frob":                                `unknown command "frob"`,
		"exec":                                "missing command",
		"exec --nope -- true":                 "not defined: -nope (see go run -C sandbox . exec --help",
		"exec -- no-such-command":             `"no-such-command": executable file not found`,
		"exec --dir no/such/dir -- true":      "no/such/dir: no such file or directory",
		"exec --components kubelet -- true":   `unknown component "kubelet" (want etcd`,
		"exec --feature-gates Foo -- true":    `"Foo": want KEY=VALUE`,
		"up --feature-gates Foo=maybe":        "Foo=maybe: want true or false",
		"up --arg kube-apiserver":             "want COMPONENT=FLAG",
		"up --kubernetes-version v9.9.9":      `"v9.9.9": want a full release name such as`,
		"up --name ../x":                      `--name "../x"`,
		"up extra":                            `unexpected argument "extra"`,
		"build extra":                         `unexpected argument "extra"`,
		"restart":                             "missing component",
		"restart --name no-such etcd":         `sandbox "no-such" is not running (start it with`,
		"status --name no-such":               `sandbox "no-such" is not running (start it with`,
		"compact --name no-such":              `sandbox "no-such" is not running (start it with`,
		"logs --name no-such kube-apiserver":  `sandbox "no-such" is not running (start it with`,
		"logs etcd kube-apiserver":            `unexpected argument "kube-apiserver"`,
		superviseCommand:                      "internal command of `up`",
		"down --name no-such extra":           `unexpected argument "extra"`,
		"exec --api-servers two -- true":      "invalid value",
		"exec --runtime-config api/all -- ls": "want KEY=VALUE",
	} {
		r := runSandbox(t, strings.Fields(args)...)
		if r.code == 0 || !strings.Contains(r.stderr, want) || r.stdout != "" {
			t.Errorf("sandbox %s: exit code %d, printed %q and on stderr %q, want %q", args, r.code, r.stdout, r.stderr, want)
		}
	}
}

func TestCommands_Help(t *testing.T) {
	help := mustRun(t, "help")
	for _, c := range commands() {
		if !strings.Contains(help, c.name) {
			t.Errorf("help does not list %s", c.name)
		}
		if r := runSandbox(t, c.name, "--help"); r.code != 0 || !strings.Contains(r.stderr, "Usage: go run -C sandbox . "+c.name) {
			t.Errorf("%s --help: exit code %d, %s", c.name, r.code, r.stderr)
		}
	}
}

func TestVersions_OnePerLine(t *testing.T) {
	if got, want := mustRun(t, "versions"), strings.Join(cluster.KubernetesVersions(), "\n")+"\n"; got != want {
		t.Errorf("it printed %q, want %q", got, want)
	}
}

func TestDown_NotRunning(t *testing.T) {
	t.Setenv(build.CacheEnv, t.TempDir())
	if r := runSandbox(t, "down"); r.code != 0 || !strings.Contains(r.stderr, `"default" is not running`) {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	if r := runSandbox(t, "status"); r.code != 1 {
		t.Errorf("status: exit code %d: %s", r.code, r.stderr)
	}
	checkNoRecords(t)
}

func TestDown_RemovesStaleFiles(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(build.CacheEnv, cache)
	folder := filepath.Join(cache, "run", "x")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"up.lock", "supervisor.lock", "supervisor.log", "cluster.json", "cluster.json.new"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, "down", "--name=x")
	checkNoRecords(t)
}

func TestDown_FailsWhileSupervisorStarts(t *testing.T) {
	t.Setenv(build.CacheEnv, t.TempDir())
	records, err := openRecords("", defaultName)
	if err != nil {
		t.Fatal(err)
	}
	starting, err := filelock.Try(records.supervisorLock())
	if err != nil {
		t.Fatal(err)
	}
	if r := runSandbox(t, "down"); r.code != 1 || !strings.Contains(r.stderr, "is starting or running (try again)") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	starting.Unlock()
	mustRun(t, "down")
	checkNoRecords(t)
}

// checkNoRecords fails the test if the cache has files of a background cluster.
func checkNoRecords(t *testing.T) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(os.Getenv(build.CacheEnv), "run", "*")); len(left) > 0 {
		inside, _ := filepath.Glob(filepath.Join(left[0], "*"))
		t.Errorf("left behind: %s %s", left, inside)
	}
}

func TestClusterFlags_SetOptions(t *testing.T) {
	var opts cluster.Options
	flags := newFlags("test", "", "")
	clusterFlags(flags, &opts)
	err := parse(flags, []string{
		"--components", "etcd, kube-apiserver", "--feature-gates=A=true,B=false", "--runtime-config", "api/beta=true",
		"--arg", "kube-apiserver=--v=4", "--arg=kube-apiserver=--max-requests-inflight=1", "--api-servers=2", "--nodes=3",
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(opts.Components, []cluster.Component{cluster.Etcd, cluster.APIServer}) ||
		!maps.Equal(opts.FeatureGates, map[string]bool{"A": true, "B": false}) ||
		!maps.Equal(opts.RuntimeConfig, map[string]string{"api/beta": "true"}) ||
		!slices.Equal(opts.ExtraArgs[cluster.APIServer], []string{"--v=4", "--max-requests-inflight=1"}) ||
		opts.APIServers != 2 || opts.Nodes != 3 {
		t.Errorf("got %+v", opts)
	}
}

func TestGoRunPath_Matches(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	for path, want := range map[string]bool{
		"/home/me/.cache/go-build/01/" + hash + "-d/sandbox": true,
		"/elsewhere/01/" + hash + "-d/sandbox":               true,
		"/tmp/go-build123/b001/exe/sandbox":                  true,
		"/home/me/go/bin/sandbox":                            false,
		"/tmp/go-build123/b001/sandbox.test":                 false,
	} {
		if got := goRunPath.MatchString(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

// The path has changed with Go releases before.
func TestGoRunPath_MatchesInstalledGo(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.org/where\n\ngo 1.26\n",
		"main.go": "package main\n\nimport \"os\"\n\nfunc main() { path, _ := os.Executable(); os.Stdout.WriteString(path) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // freshly built, and from the cache
		cmd := exec.Command("go", "run", ".")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "PWD="+dir)
		path, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if !goRunPath.Match(path) {
			t.Errorf("%s is not recognized", path)
		}
	}
}

func TestFindCommand_RelativeToUserFolder(t *testing.T) {
	user := t.TempDir()
	script := filepath.Join(user, "sub", "script")
	if err := os.MkdirAll(filepath.Dir(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PWD", user) // go run -C leaves it as it was
	for _, c := range []struct{ command, dir, wantPath, wantDir string }{
		{"sub/script", "", script, user},
		{"./script", "sub", script, filepath.Dir(script)},
		{script, "", script, user},
	} {
		cmd, err := findCommand([]string{c.command}, c.dir)
		if err != nil {
			t.Error(err)
			continue
		}
		if cmd.Path != c.wantPath || cmd.Dir != c.wantDir || cmd.Args[0] != c.command {
			t.Errorf("%s in %q: %s in %s", c.command, c.dir, cmd.Path, cmd.Dir)
		}
	}
}
