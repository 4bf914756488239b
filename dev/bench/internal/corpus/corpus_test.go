package corpus

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRead_KindsWithExamples(t *testing.T) {
	if os.Getenv("ANYKIND_CORPUS") == "" {
		_, err := Read()
		require.ErrorContains(t, err, "ANYKIND_CORPUS")
		return
	}
	kinds, err := Read()
	require.NoError(t, err)
	require.NotEmpty(t, kinds)
	examples := 0
	for _, kind := range kinds {
		assert.NotEmpty(t, kind.GVR.Group)
		assert.NotEmpty(t, kind.GVR.Version)
		assert.NotEmpty(t, kind.GVR.Resource)
		assert.NotEmpty(t, kind.Kind)
		examples += len(kind.Examples)
	}
	assert.Greater(t, examples, len(kinds)/2)
}
