package discovery_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/corpus"
)

func TestSnapshot_ThreeHundredCRDsEqualKubectl(t *testing.T) {
	conn := sandbox(t)
	cluster.Define(t, client.Send(conn), append(corpus.Definitions(t, 300), corpus.Synthetic(t)...))
	snapshot, err := discovery.New(conn, nil).Snapshot(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, table(apiResources(t)), rows(snapshot, nil))
}
