package kubeconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEdits_CheckRestFindsChangedEntries(t *testing.T) {
	const before = `
future: {a: 1}
clusters: [{name: a, cluster: {server: "https://a"}}, {name: b, cluster: {server: "https://b"}}]
users: [{name: a, user: {token: t, later: 1}}]
`
	for name, c := range map[string]struct{ after, says string }{
		"the same":                 {before, ""},
		"the edited entry":         {`{future: {a: 1}, clusters: [{name: b, cluster: {server: "https://b"}}, {name: a}], users: [{name: a, user: {token: t, later: 1}}]}`, ""},
		"the edited entry is gone": {`{future: {a: 1}, clusters: [{name: b, cluster: {server: "https://b"}}], users: [{name: a, user: {token: t, later: 1}}], current-context: x}`, ""},
		"another cluster":          {`{future: {a: 1}, clusters: [{name: b, cluster: {server: "https://a"}}], users: [{name: a, user: {token: t, later: 1}}]}`, `entry "b" of clusters`},
		"another cluster is gone":  {`{future: {a: 1}, clusters: [{name: a}], users: [{name: a, user: {token: t, later: 1}}]}`, `entry "b" of clusters`},
		"a new entry":              {`{future: {a: 1}, clusters: [{name: b, cluster: {server: "https://b"}}, {name: c}], users: [{name: a, user: {token: t, later: 1}}]}`, `entry "c" of clusters`},
		"an unknown field":         {`{future: {a: 1}, clusters: [{name: b, cluster: {server: "https://b"}}], users: [{name: a, user: {token: t, later: 2}}]}`, `entry "a" of users`},
		"an unknown top field":     {`{clusters: [{name: b, cluster: {server: "https://b"}}], users: [{name: a, user: {token: t, later: 1}}]}`, `field "future"`},
	} {
		t.Run(name, func(t *testing.T) {
			done := edits{}
			done.entry("clusters", "a")
			done.field("current-context")
			err := done.checkRest([]byte(before), []byte(c.after))
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			assert.NotContains(t, err.Error(), "https://")
		})
	}
}

func TestDocument_BytesRefusesUnaskedChanges(t *testing.T) {
	d, err := ParseDocument([]byte("users: [{name: a, user: {token: A}}, {name: b, user: {token: B}}]\n"), "")
	require.NoError(t, err)
	list := field(d.top(), "users")
	setField(field(named(list, "b"), "user"), "token", stringNode("A", true)) // as a defect in an edit would
	_, err = d.Bytes()
	require.ErrorContains(t, err, `entry "b" of users`)
	assert.NotContains(t, err.Error(), `"A"`)
}
