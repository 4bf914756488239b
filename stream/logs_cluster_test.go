package stream_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/stream"
)

// logged appends lines to the log that all pods of the sandbox share, and takes them out when the test ends.
func logged(t *testing.T) func(texts ...string) {
	t.Helper()
	path := cluster.PodLog(t)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.WriteFile(path, before, 0o600)) })
	return func(texts ...string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		if !assert.NoError(t, err) {
			return
		}
		defer file.Close()
		for _, text := range texts {
			_, err = fmt.Fprintf(file, "%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), text)
			assert.NoError(t, err)
		}
	}
}

func TestLogs_SameAsKubectl(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	write := logged(t)
	write("one", "two", "", "three ü")
	zero := int64(0)
	two := int64(2)
	for flags, opts := range map[string]*stream.LogOptions{
		"":                                  nil,
		"--timestamps":                      {Timestamps: true},
		"--tail=2":                          {TailLines: &two},
		"--tail=0":                          {TailLines: &zero},
		"--previous":                        {Previous: true},
		"--container=web":                   {Container: "web"},
		"--limit-bytes=20":                  {LimitBytes: 20},
		"--since=1h":                        {SinceSeconds: 3600},
		"--since-time=2024-01-01T00:00:01Z": {SinceTime: time.Date(2024, 1, 1, 0, 0, 1, 0, time.UTC)},
	} {
		t.Run(flags, func(t *testing.T) {
			args := []string{"logs", "-n", namespaceOf(t, pods), "web-0"}
			if flags != "" {
				args = append(args, flags)
			}
			want, _, code := kubectl(t, "", args...)
			require.Zero(t, code)
			log, err := stream.Logs(t.Context(), pods, "web-0", opts)
			require.NoError(t, err)
			got, err := io.ReadAll(log)
			require.NoError(t, err)
			require.NoError(t, log.Close())
			assert.Equal(t, want, string(got))
		})
	}
	_, err := stream.Logs(t.Context(), pods, "web-0", &stream.LogOptions{Container: "none"})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
}

func TestLogs_FollowAcrossRotationAndRestarts(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	write := logged(t)
	path := cluster.PodLog(t)
	zero := int64(0)
	log, err := stream.Logs(t.Context(), pods, "web-0", &stream.LogOptions{Follow: true, TailLines: &zero})
	require.NoError(t, err)
	defer log.Close()
	reader := bufio.NewReader(log)
	next := func(want string) {
		t.Helper()
		line, err := reader.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want+"\n", line)
	}
	// That the log is being followed shows when what is written comes.
	first := make(chan error)
	go func() {
		_, err := reader.ReadString('\n')
		first <- err
	}()
	for begun := false; !begun; {
		write("begin")
		select {
		case err := <-first:
			require.NoError(t, err)
			begun = true
		case <-time.After(time.Second):
		}
	}
	write("one")
	for line := "begin\n"; line != "one\n"; {
		line, err = reader.ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, os.Rename(path, path+".1"))
	t.Cleanup(func() { _ = os.Remove(path + ".1") })
	write("two", "two")
	next("two")
	next("two")
	// It is killed: one that may end in peace waits for the log until the sandbox kills it.
	cluster.RestartAPIServer(t, true)
	write("after the restart", "", "and more")
	next("after the restart")
	next("")
	next("and more")
	cluster.Restart(t, cluster.Nodes, true)
	forgetLeases(t)
	write("after the node's restart")
	next("after the node's restart")
}

// forgetLeases deletes the leases of nodes. What keeps the sandbox's nodes holds them for 40 seconds after it was killed,
// and its successor starts no pods meanwhile.
func forgetLeases(t *testing.T) {
	t.Helper()
	leases, err := connect(t, "admin").Resource(t.Context(), "leases")
	require.NoError(t, err)
	for lease, err := range leases.Namespace("kube-node-lease").List(t.Context(), nil) {
		require.NoError(t, err)
		_, err := leases.Namespace("kube-node-lease").Delete(t.Context(), lease.GetName(), nil)
		require.NoError(t, err)
	}
}

func TestLogLines_Origins(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "first", "second")
	write := logged(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan struct{})
	var writer sync.WaitGroup
	defer writer.Wait()
	defer close(done)
	writer.Go(func() {
		for i := 0; ; i++ {
			write(fmt.Sprint("ping ", i))
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	zero := int64(0)
	seen := map[string]map[string]int{}
	joined := false
	for line, err := range stream.LogLines(ctx, pods.AllNamespaces(), &stream.LogOptions{Selector: "app=web", Follow: true, TailLines: &zero}) {
		require.NoError(t, err)
		if line.Namespace != namespaceOf(t, pods) {
			continue
		}
		source := line.Pod + "/" + line.Container
		if seen[source] == nil {
			seen[source] = map[string]int{}
		}
		seen[source][line.Time.String()+line.Text]++
		assert.Equal(t, 1, seen[source][line.Time.String()+line.Text], "%s: %s", source, line.Text)
		if len(seen) == 2 && !joined {
			joined = true
			run(t, pods, named("web-1"), "only")
		}
		if len(seen) == 3 && len(seen["web-1/only"]) > 5 {
			break
		}
	}
	assert.Contains(t, seen, "web-0/first")
	assert.Contains(t, seen, "web-0/second")
}

func TestLogs_Deployment(t *testing.T) {
	pods := podsOf(t)
	deployments, err := connect(t, "admin").Resource(t.Context(), "deployments")
	require.NoError(t, err)
	deployments = deployments.Namespace(namespaceOf(t, pods))
	_, err = deployments.Create(t.Context(), deployment("web", 2), nil)
	require.NoError(t, err)
	available(t, deployments, "web", 2)

	out, err := stream.Command(t.Context(), deployments, "web", "echo", "hello").Output()
	require.NoError(t, err)
	assert.Equal(t, "hello\n", string(out))
	log, err := stream.Logs(t.Context(), deployments, "web", nil)
	require.NoError(t, err)
	text, err := io.ReadAll(log)
	require.NoError(t, err)
	require.NoError(t, log.Close())
	seen := map[string]string{}
	for line, err := range stream.LogLines(t.Context(), deployments, &stream.LogOptions{Name: "web"}) {
		require.NoError(t, err)
		seen[line.Pod] += line.Text + "\n"
	}
	require.Len(t, seen, 2)
	for _, lines := range seen {
		assert.Equal(t, string(text), lines)
	}
}
