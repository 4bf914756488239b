package edit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/yamltree"
)

func TestDocument_VerifyUnchanged(t *testing.T) {
	const before = `
future: {a: 1}
clusters: [{name: a, cluster: {server: "https://a"}}, {name: b, cluster: {server: "https://b"}}]
users: [{name: a, user: {token: t, later: 1}}]
`
	for name, tc := range map[string]struct{ after, want string }{
		"same":                  {before, ""},
		"edited entry":          {`{future: {a: 1}, clusters: [{name: b, cluster: {server: "https://b"}}, {name: a}], users: [{name: a, user: {token: t, later: 1}}]}`, ""},
		"deleted entry":         {`{future: {a: 1}, clusters: [{name: b, cluster: {server: "https://b"}}], users: [{name: a, user: {token: t, later: 1}}], current-context: x}`, ""},
		"other cluster":         {`{future: {a: 1}, clusters: [{name: b, cluster: {server: "https://a"}}], users: [{name: a, user: {token: t, later: 1}}]}`, `entry "b" of clusters`},
		"other cluster deleted": {`{future: {a: 1}, clusters: [{name: a}], users: [{name: a, user: {token: t, later: 1}}]}`, `entry "b" of clusters`},
		"new entry":             {`{future: {a: 1}, clusters: [{name: b, cluster: {server: "https://b"}}, {name: c}], users: [{name: a, user: {token: t, later: 1}}]}`, `entry "c" of clusters`},
		"unknown field":         {`{future: {a: 1}, clusters: [{name: b, cluster: {server: "https://b"}}], users: [{name: a, user: {token: t, later: 2}}]}`, `entry "a" of users`},
		"unknown top field":     {`{clusters: [{name: b, cluster: {server: "https://b"}}], users: [{name: a, user: {token: t, later: 1}}]}`, `field "future"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Document{before: []byte(before), changed: map[part]bool{{"clusters", "a"}: true, {field: "current-context"}: true}}
			err := d.verifyUnchanged([]byte(tc.after))
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
			assert.NotContains(t, err.Error(), "https://")
		})
	}
}

func TestDocument_BytesRejectsUnintendedChanges(t *testing.T) {
	d, err := Parse([]byte("users: [{name: a, user: {token: A}}, {name: b, user: {token: B}}]\n"), "")
	require.NoError(t, err)
	setField(yamltree.Field(d.entry("users", "b"), "user"), "token", stringNode("A", true)) // as a defect in an edit would
	_, err = d.Bytes()
	require.ErrorContains(t, err, `entry "b" of users`)
	assert.NotContains(t, err.Error(), `"A"`)
}
