//go:build unix

package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fakeSide struct{ stopped bool }

func (f *fakeSide) Versions() Versions         { return Versions{"pods": {"a/b": "7"}} }
func (f *fakeSide) Count() (int, int64, error) { return 3, 9, errors.New("a cache ended") }
func (f *fakeSide) Stop()                      { f.stopped = true }

func TestServe_EachCommand(t *testing.T) {
	side := &fakeSide{}
	var got *Config
	start := func(_ context.Context, config *Config) (Side, error) {
		got = config
		return side, nil
	}
	in := strings.NewReader(`{"Kubeconfig":"k","Sources":[{"Resource":"pods"}]}` + "\nsample\nversions\nstop\n")
	var out bytes.Buffer
	require.NoError(t, serve(t.Context(), in, &out, start))
	assert.Equal(t, &Config{Kubeconfig: "k", Sources: []Source{{Resource: "pods"}}}, got)
	results := json.NewDecoder(&out)
	var sample, left Sample
	var versions Versions
	require.NoError(t, results.Decode(&sample))
	require.NoError(t, results.Decode(&versions))
	require.NoError(t, results.Decode(&left))
	assert.Equal(t, 3, sample.Objects)
	assert.Equal(t, int64(9), sample.Events)
	assert.Equal(t, "a cache ended", sample.Trouble)
	assert.Positive(t, sample.CPU)
	assert.Equal(t, side.Versions(), versions)
	assert.True(t, side.stopped)
}

func TestServe_EndsWithTheDriver(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "read the configuration"}, {"{\n", "read the configuration"}, {"{}\n", "the driver has gone"}, {"{}\nnonsense\n", `unknown command "nonsense"`},
	} {
		side := &fakeSide{}
		err := serve(t.Context(), strings.NewReader(c.in), &bytes.Buffer{}, func(context.Context, *Config) (Side, error) { return side, nil })
		assert.ErrorContains(t, err, c.want)
	}
}

func TestVersions_AddDistinguishesContents(t *testing.T) {
	add := func(text string) Versions {
		obj, err := unstructured.Decode([]byte(text))
		require.NoError(t, err)
		all := Versions{}
		require.NoError(t, all.Add(obj))
		return all
	}
	const plain = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"},"spec":{"x":1}}`
	assert.Equal(t, add(plain), add(strings.Replace(plain, `"name"`, `"managedFields":[{}],"name"`, 1)))
	assert.NotEqual(t, add(plain), add(strings.Replace(plain, `"x":1`, `"x":2`, 1)))
	assert.Regexp(t, "^u 7 [0-9a-f]{8}$", add(plain)["Pod."]["b/a"])
	lease := add(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a","namespace":"kube-system","uid":"u","resourceVersion":"7"}}`)
	assert.Equal(t, Versions{"Lease.coordination.k8s.io": {"kube-system/a": "u"}}, lease)
}
