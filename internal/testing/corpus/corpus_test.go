package corpus

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDefinitions_SpreadOverTheCorpus(t *testing.T) {
	definitions := Definitions(t, 300)
	require.Len(t, definitions, 300)
	names := map[string]bool{}
	groups := map[string]bool{}
	for _, one := range definitions {
		var definition struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Group string
				Names struct{ Kind string }
			}
		}
		require.NoError(t, json.Unmarshal(one.JSON, &definition), one.File)
		assert.Equal(t, "CustomResourceDefinition", definition.Kind)
		assert.Equal(t, []string{one.Name, one.Group, one.Kind}, []string{definition.Metadata.Name, definition.Spec.Group, definition.Spec.Names.Kind})
		names[one.Name] = true
		groups[one.Group] = true
	}
	assert.Len(t, names, 300)
	assert.Greater(t, len(groups), 40)
	assert.Equal(t, definitions, Definitions(t, 300))
}

func TestObjects_HaveApiVersionAndKind(t *testing.T) {
	for _, one := range Objects(t, 1000) {
		var object struct{ APIVersion, Kind string }
		require.NoError(t, json.Unmarshal(one.JSON, &object), one.File)
		assert.NotEmpty(t, object.APIVersion, one.File)
		assert.Equal(t, one.Kind, object.Kind, one.File)
	}
	assert.GreaterOrEqual(t, len(Synthetic(t)), 30)
}
