package schema

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHashOf(t *testing.T) {
	for document, want := range map[string]string{
		"/openapi/v3/apis/apps/v1?hash=A1b2":           "A1b2",
		"/openapi/v3/apis/apps/v1?hash=A1b2&other=1":   "A1b2",
		"/openapi/v3/apis/apps/v1?other=1&hash=A1b2":   "A1b2",
		"/openapi/v3/apis/apps/v1?hash=a%2Fb+c":        "a/b c",
		"/openapi/v3/apis/apps/v1?hash=A1b2#fragment":  "A1b2",
		"/openapi/v3/apis/apps/v1":                     "",
		"https://host/openapi/v3/api/v1?hash=x?hash=y": "x?hash=y",
	} {
		hash, err := hashOf(document)
		assert.NoError(t, err, document)
		assert.Equal(t, want, hash, document)
	}
	_, err := hashOf("%zz")
	assert.Error(t, err)
}
