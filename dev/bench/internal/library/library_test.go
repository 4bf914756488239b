//go:build unix

package library

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fakeLibrary struct{}

func (fakeLibrary) Sync(_ context.Context, seen func(string)) (int, error) {
	seen(fmt.Sprint(time.Now().Add(-time.Minute).UnixNano()))
	seen("") // an object without a change
	return 3, nil
}

func (fakeLibrary) Subtree(root Ref) (int, error) {
	if root != (Ref{"apps", "Deployment", "shop", "web", "7"}) {
		return 0, errors.New("a different root")
	}
	return 50, nil
}

func TestServe_EachCommand(t *testing.T) {
	var out bytes.Buffer
	in := "sync\nheap\nsubtree\tapps\tDeployment\tshop\tweb\t7\nchanges\nchanges\n"
	require.NoError(t, serve(t.Context(), fakeLibrary{}, strings.NewReader(in), &out))
	results := make([]Result, 5)
	decoder := json.NewDecoder(&out)
	for i := range results {
		require.NoError(t, decoder.Decode(&results[i]))
	}
	assert.Equal(t, 3, results[0].Objects)
	assert.Positive(t, results[1].Heap)
	assert.Equal(t, 50, results[2].Objects)
	require.Len(t, results[3].Delays, 1)
	assert.GreaterOrEqual(t, results[3].Delays[0], 60.0)
	assert.Empty(t, results[4].Delays)
}

func TestServe_InvalidCommand(t *testing.T) {
	for in, want := range map[string]string{"nonsense\n": "unknown command", "subtree\ta\n": "five arguments", "subtree\ta\tb\tc\td\te\n": "a different root"} {
		assert.ErrorContains(t, serve(t.Context(), fakeLibrary{}, strings.NewReader(in), &bytes.Buffer{}), want)
	}
}
