package apitest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/dynamic"
)

func TestServer_SetUsers(t *testing.T) {
	eachConnection(t, func(t *testing.T, opts apitest.Options) {
		opts.Users = []apitest.User{{Name: "ann", Token: "old"}}
		server := apitest.NewServer(t, &opts)
		read := func(token string) error {
			client, err := dynamic.Connect(t.Context(), server.ConfigFor(token))
			if err != nil {
				return err
			}
			defer client.Close()
			maps, err := client.Resource(t.Context(), "configmaps")
			if err == nil {
				_, err = maps.Namespace("default").Get(t.Context(), "missing", nil)
			}
			return err
		}
		assert.True(t, apierrors.IsNotFound(read("old")), "authenticated")
		assert.True(t, apierrors.IsUnauthorized(read("new")))

		server.SetUsers([]apitest.User{{Name: "ann", Token: "new"}})
		assert.True(t, apierrors.IsUnauthorized(read("old")))
		assert.True(t, apierrors.IsNotFound(read("new")))
		assert.Equal(t, "ann", server.Requests()[len(server.Requests())-1].User)
	})
}
