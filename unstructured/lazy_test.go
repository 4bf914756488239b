package unstructured

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALazyPrintsItsNameAndNothingOfWhatItHolds(t *testing.T) {
	secret, err := NewLazy([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"shop","name":"key"},"data":{"a":"aGlkZGVu"}}`))
	require.NoError(t, err)
	node, err := NewLazy([]byte(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}}`))
	require.NoError(t, err)
	assert.Equal(t, "Secret shop/key, Node n1", fmt.Sprintf("%v, %s", secret, node))
}
