package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPrintChanges_AcrossServerCrash(t *testing.T) {
	limits := client.Resource(t, client.Connect(t, "admin"), "limits").Namespace("default")
	create := func(name string) {
		_, err := limits.Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"limits": []any{}},
		}}, nil)
		require.NoError(t, err)
	}
	remove := func(name string) {
		_, err := limits.Delete(t.Context(), name, nil)
		require.NoError(t, err)
	}
	create("first")
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- printChanges(ctx, limits, write) }()
	lines := bufio.NewScanner(read)
	expect := func(want string) {
		for again := true; again; again = strings.HasPrefix(lines.Text(), "interrupted") {
			require.True(t, lines.Scan())
		}
		assert.Equal(t, want, lines.Text())
	}
	for _, want := range []string{"STARTED", "ADDED first", "SYNCED"} {
		expect(want)
	}
	cluster.RestartAPIServer(t, true)
	create("second")
	expect("ADDED second")
	remove("first")
	expect("DELETED first")
	remove("second")
	expect("DELETED second")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}
