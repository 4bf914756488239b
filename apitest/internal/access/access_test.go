package access_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func object(text string, arguments ...any) *unstructured.Object {
	for obj, err := range unstructured.NewYAMLDecoder(strings.NewReader(fmt.Sprintf(text, arguments...))).All() {
		if err == nil {
			return obj
		}
	}
	return nil
}

// grant creates roles and bindings of the user bob: config maps by name in the namespace, what the role view has, an
// aggregated role, a path, and a binding to a role that does not exist.
func grant(t *testing.T, s *compare.Server) {
	t.Helper()
	s.Need(t,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: named, namespace: NAMESPACE}, rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [mine], verbs: [get, update]}, {apiGroups: [apps], resources: ["*/scale"], verbs: ["*"]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: named, namespace: NAMESPACE}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: named}, subjects: [{kind: User, name: bob}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: viewer, namespace: NAMESPACE}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:aggregate-to-view"}, subjects: [{kind: ServiceAccount, name: viewer}, {kind: Group, name: viewers}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: dangling, namespace: NAMESPACE}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: absent}, subjects: [{kind: User, name: carol}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE-paths}, rules: [{nonResourceURLs: ["/metrics", "/debug/*"], verbs: [get]}, {apiGroups: [""], resources: [nodes], verbs: [list]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NAMESPACE-paths}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAMESPACE-paths}, subjects: [{kind: User, name: bob}]}`,
	)
}

// outcomes returns the results of requests of several users, as text.
func outcomes(t *testing.T, s *compare.Server) map[string]string {
	t.Helper()
	grant(t, s)
	all := map[string]string{}
	users := map[string]transport.Impersonation{
		"bob": {User: "bob"}, "carol": {User: "carol"}, "viewer": {User: "dora", Groups: []string{"viewers"}},
		"account": {User: "system:serviceaccount:" + s.Namespace + ":viewer"}, "anonymous": {User: "system:anonymous"},
		"master": {User: "eve", Groups: []string{"system:masters"}},
	}
	s.Eventually(t, func() bool { // a real server takes a moment to know the bindings
		_, err := client.Resource(t, s.As(t, users["bob"]).Client, "nodes").ListPage(t.Context(), nil)
		return err == nil
	})
	for name, user := range users {
		as := s.As(t, user)
		for _, path := range []string{"configmaps/mine", "configmaps/other", "configmaps", "pods", "secrets", "pods/web", "services/x"} {
			resource, rest, _ := strings.Cut(path, "/")
			handle := client.Resource(t, as.Client, resource).Namespace(s.Namespace)
			var err error
			if rest == "" {
				_, err = handle.ListPage(t.Context(), nil)
			} else {
				_, err = handle.Get(t.Context(), rest, nil)
			}
			all[name+" "+path] = s.Outcome(nil, err)
		}
		for key, spec := range map[string]string{
			"scale":     fmt.Sprintf(`{resourceAttributes: {namespace: %s, verb: update, group: apps, resource: deployments, subresource: scale}}`, s.Namespace),
			"metrics":   `{nonResourceAttributes: {path: /metrics, verb: get}}`,
			"debug":     `{nonResourceAttributes: {path: /debug/pprof, verb: get}}`,
			"secrets":   fmt.Sprintf(`{resourceAttributes: {namespace: %s, verb: get, resource: secrets}}`, s.Namespace),
			"pods":      fmt.Sprintf(`{resourceAttributes: {namespace: %s, verb: watch, resource: pods}}`, s.Namespace),
			"nothing":   `{}`,
			"elsewhere": `{resourceAttributes: {namespace: elsewhere, verb: get, resource: pods}}`,
		} {
			review := object(`{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, spec: %s}`, spec)
			reviews := client.Resource(t, as.Client, "selfsubjectaccessreviews")
			response, err := reviews.Create(t.Context(), review, nil)
			if err != nil {
				all[name+" may "+key] = s.Outcome(nil, err)
				continue
			}
			all[name+" may "+key] = s.Outcome(response.Object["status"], nil)
		}
	}
	return all
}

func TestAccess_RBACAsOnTheServer(t *testing.T) {
	compare.Responses(t, &apitest.Options{RBAC: true}, 60, outcomes)
}

func TestAccess_Credentials(t *testing.T) {
	server := apitest.NewServer(t, &apitest.Options{RBAC: true, Users: []apitest.User{{Name: "bob", Token: "bobs", Groups: []string{"staff"}}}})
	certificate, key, err := server.ClientCertificate("carol", "system:masters")
	require.NoError(t, err)
	byCertificate := server.ConfigFor("")
	byCertificate.CertFile = filepath.Join(t.TempDir(), "cert.pem")
	byCertificate.KeyFile = filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(byCertificate.CertFile, certificate, 0o600))
	require.NoError(t, os.WriteFile(byCertificate.KeyFile, key, 0o600))
	account := object(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: default}}`)
	require.NoError(t, server.Create(t.Context(), account))
	token := requestToken(t, server.Client(), "robot")
	for want, cfg := range map[string]*transport.Config{
		"bob [staff system:authenticated]":            server.ConfigFor("bobs"),
		"carol [system:masters system:authenticated]": byCertificate,
		"403": server.ConfigFor(""), // as on a server: RBAC lets anonymous users read the version alone
		"system:serviceaccount:default:robot [system:serviceaccounts system:serviceaccounts:default system:authenticated]": server.ConfigFor(token),
		"401": server.ConfigFor("unknown"),
	} {
		assert.Equal(t, want, userOf(t, cfg))
	}
}

func requestToken(t *testing.T, c *dynamic.Client, account string) string {
	t.Helper()
	accounts := client.Resource(t, c, "serviceaccounts").Namespace("default")
	request := object(`{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {expirationSeconds: 600}}`)
	response, err := accounts.Named(account).Subresource("token").Create(t.Context(), request, nil)
	require.NoError(t, err)
	token, _, err := unstructured.Get[string](response, "status", "token")
	require.NoError(t, err)
	return token
}

// userOf returns the user and groups of the configuration, or the code of an error.
func userOf(t *testing.T, cfg *transport.Config) string {
	t.Helper()
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	defer conn.Close()
	response, err := conn.Do(t.Context(), &transport.Request{
		Method: http.MethodPost, Path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", Header: http.Header{"Content-Type": {"application/json"}},
		Body: []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`),
	})
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Sprint(status.Status().Code)
	}
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var review struct {
		Status struct {
			UserInfo struct {
				Username string
				Groups   []string
			}
		}
	}
	require.NoError(t, json.Unmarshal(body, &review))
	return fmt.Sprint(review.Status.UserInfo.Username, " ", review.Status.UserInfo.Groups)
}
