package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T) *transport.Conn {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func TestList_EqualsKubectl(t *testing.T) {
	snapshot, err := discovery.New(connect(t), nil).Snapshot(t.Context())
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		wide  bool
		flags []string
	}{"narrow": {false, nil}, "wide": {true, []string{"-o", "wide"}}} {
		t.Run(name, func(t *testing.T) {
			want, err := exec.CommandContext(t.Context(), cluster.Kubectl(t), append([]string{"--kubeconfig", cluster.Kubeconfig(t),
				"--cache-dir", t.TempDir(), "api-resources"}, tc.flags...)...).Output()
			require.NoError(t, err)
			var got bytes.Buffer
			require.NoError(t, list(snapshot, &got, tc.wide))
			assert.Equal(t, trimmed(string(want)), trimmed(got.String()))
		})
	}
}

// trimmed removes the padding of the last column.
func trimmed(table string) string {
	var out strings.Builder
	for line := range strings.Lines(table) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}

func TestWatchChanges(t *testing.T) {
	conn := connect(t)
	client := discovery.New(conn, nil)
	snapshot, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { write.CloseWithError(watchChanges(ctx, client, snapshot, write)) })
	lines := bufio.NewScanner(read)
	const group = "watched.example.com"
	expect := func(sign string) {
		t.Helper()
		want := fmt.Sprintf("%-7s  doodads.%s  %s/v1, Kind=Doodad", sign, group, group)
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Fatalf("%q was not printed: %v", want, lines.Err())
	}
	send(t, conn, http.MethodPost, "", strings.ReplaceAll(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"doodads.GROUP"},"spec":{"group":"GROUP","scope":"Cluster","names":{"plural":"doodads","kind":"Doodad"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, "GROUP", group))
	expect("added")
	send(t, conn, http.MethodDelete, "/doodads."+group, "{}")
	expect("removed")
	cancel()
	_, err = io.Copy(io.Discard, read)
	require.ErrorIs(t, err, context.Canceled)
	watching.Wait()
}

func send(t *testing.T, conn *transport.Conn, method, name, body string) {
	t.Helper()
	response, err := conn.Do(t.Context(), &transport.Request{
		Method: method, Path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" + name,
		Body: []byte(body), Header: http.Header{"Content-Type": {"application/json"}},
	})
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
}
