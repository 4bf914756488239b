//go:build unix

package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dev/bench/internal/soak"
)

func TestParse_RejectsWhatCannotRun(t *testing.T) {
	t.Setenv("KUBECONFIG", "kubeconfig")
	t.Setenv("ANYKIND_SANDBOX", "sandbox")
	opts, err := parse([]string{"-minutes", "0.5", "-seed", "7"})
	require.NoError(t, err)
	assert.Equal(t, 30*time.Second, opts.length)
	assert.Equal(t, uint64(7), opts.seed)
	for _, args := range [][]string{{"-minutes", "0"}, {"-rate", "0"}, {"-objects", "99"}, {"-minutes", "x"}} {
		_, err := parse(args)
		assert.Error(t, err, args)
	}
	t.Setenv("ANYKIND_SANDBOX", "")
	_, err = parse(nil)
	assert.ErrorContains(t, err, "make soak")
}

func TestWorld_Has35Sources(t *testing.T) {
	w := &world{resources: builtIn}
	for n := range customKinds {
		w.resources = append(w.resources, resource{group: group, plural: "soaks", custom: n})
	}
	assert.Len(t, w.sources(), 35)
}

func TestDiffer_EachKindOfDifference(t *testing.T) {
	of := func(name, version string) soak.Versions { return soak.Versions{"Pod.": {name: version}} }
	for name, c := range map[string]struct {
		before, listed, after soak.Versions
		want                  []string
	}{
		"equal":           {of("a", "1"), of("a", "1"), of("a", "1"), nil},
		"changed before":  {of("a", "0"), of("a", "1"), of("a", "1"), nil},
		"changed after":   {of("a", "1"), of("a", "1"), of("a", "2"), nil},
		"created":         {nil, nil, of("a", "1"), nil},
		"deleted":         {of("a", "1"), of("a", "1"), nil, nil},
		"missing":         {nil, of("a", "1"), nil, []string{`Pod. a is "", listed as "1"`}},
		"left":            {of("a", "1"), nil, of("a", "1"), []string{`Pod. a is "1", not listed`}},
		"an old version":  {of("a", "1"), of("a", "2"), of("a", "1"), []string{`Pod. a is "1", listed as "2"`}},
		"a failed health": {nil, nil, soak.Versions{soak.Failure: {"": "no"}}, []string{`failure  is "no", not listed`}},
	} {
		assert.Equal(t, c.want, differ(c.before, c.listed, c.after), name)
	}
}

func TestInventoryResult_TableHasBothSamples(t *testing.T) {
	r := &inventoryResult{
		result: result{
			opts: &options{length: time.Minute, rate: 150}, changes: 9, faults: map[string]int{"etcd compacted": 2},
			samples: map[string][]soak.Sample{"ours": {{RSS: 30e6, Goroutines: 7, Descriptors: 8}}}, left: []soak.Sample{{Goroutines: 3}},
		},
		definitions: 422, objects: 20000, before: &soak.Sample{Goroutines: 5, CPU: 1}, after: &soak.Sample{Goroutines: 6, CPU: 3},
	}
	table := r.table()
	assert.Contains(t, table, "objects of 422 custom and 5 built-in kinds")
	assert.Contains(t, table, "| goroutines | 5 | 6 |")
	assert.Contains(t, table, "at most 30 MB, and there were at most 7 goroutines and 8 descriptors. The process took 2 s of CPU.")
	assert.Contains(t, table, "lists of 20000 objects")
}

func TestSilentProxy_DropsWhileFrozenAndAfter(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer echo.Close()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	proxy, err := newSilentProxy(ctx, echo.Addr().String())
	require.NoError(t, err)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", proxy.listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	responds := func(conn net.Conn) error {
		_, err := conn.Write([]byte("x"))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
		_, err = conn.Read(make([]byte, 1))
		return err
	}
	old := dial()
	require.NoError(t, responds(old))
	proxy.set(true)
	assert.ErrorIs(t, responds(old), os.ErrDeadlineExceeded)
	assert.ErrorIs(t, responds(dial()), os.ErrDeadlineExceeded, "a new connection is silent as well")
	proxy.set(false)
	assert.ErrorIs(t, responds(old), os.ErrDeadlineExceeded, "a silent connection stays so")
	assert.NoError(t, responds(dial()))
}

func TestResult_WritesBetweenMarks(t *testing.T) {
	sample := func(cpu float64, rss uint64) soak.Sample {
		return soak.Sample{CPU: cpu, RSS: rss, HeapInuse: rss, Events: 1}
	}
	r := &result{
		opts: &options{length: time.Minute, rate: 150, objects: 1000, seed: 1}, changes: 9, faults: map[string]int{"etcd compacted": 2},
		samples: map[string][]soak.Sample{"ours": {sample(1, 10e6), sample(3, 20e6)}, "theirs": {sample(1, 10e6), sample(5, 40e6)}},
		left:    []soak.Sample{{Goroutines: 3}, {Goroutines: 4}},
	}
	path := filepath.Join(t.TempDir(), "RELIABILITY.md")
	assert.ErrorContains(t, write(path, r.table()), "must exist")
	require.NoError(t, os.WriteFile(path, []byte("before\n"+beginMark+"old\n"+endMark+"after\n"), 0o600))
	require.NoError(t, write(path, r.table()))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "before\n"+beginMark) && strings.HasSuffix(string(text), endMark+"after\n"))
	assert.NotContains(t, string(text), "old")
	assert.Contains(t, string(text), "| CPU, seconds | 2.0 | 4.0 | 0.50 |")
	assert.Contains(t, string(text), "| largest RSS, MB | 20 | 40 | 0.50 |")
	assert.Contains(t, string(text), "| etcd compacted | 2 |")
	require.NoError(t, os.WriteFile(path, []byte("no marks"), 0o600))
	assert.ErrorContains(t, write(path, r.table()), "lacks the line")
}
