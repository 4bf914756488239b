package change

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSplitJSONPath_Forms(t *testing.T) {
	for _, c := range []struct {
		text, expression, value string
		hasValue                bool
	}{
		{"{.status.phase}=Running", "{.status.phase}", "Running", true},
		{".status.phase='Running'", "{.status.phase}", "Running", true},
		{"status.loadBalancer.ingress", "{.status.loadBalancer.ingress}", "", false},
		{`{.status.conditions[?(@.type=="Ready")].status}=True`, `{.status.conditions[?(@.type=="Ready")].status}`, "True", true},
	} {
		expression, value, hasValue, err := splitJSONPath(c.text)
		require.NoError(t, err, c.text)
		assert.Equal(t, []any{c.expression, c.value, c.hasValue}, []any{expression, value, hasValue}, c.text)
	}
	for _, text := range []string{"", "{}", "{.a}=", "{.a}=b=c", "{.a{b}}"} {
		_, _, _, err := splitJSONPath(text)
		assert.Error(t, err, "%q", text)
	}
}

func TestParseWaitConditions_Errors(t *testing.T) {
	for _, texts := range [][]string{nil, {"nonsense"}, {"condition=Ready", "phase=x"}, {"jsonpath={.a"}} {
		_, err := parseWaitConditions(texts)
		assert.Error(t, err, "%q", texts)
	}
	conditions, err := parseWaitConditions([]string{"Delete", "CREATE", "ready", "condition=Ready=False", "jsonpath=.a"})
	require.NoError(t, err)
	assert.True(t, conditions[0].isDelete())
	assert.True(t, conditions[1].isCreate())
}
