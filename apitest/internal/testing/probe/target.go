package probe

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed" // seeds.yaml
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/recorded"
)

//go:embed seeds.yaml
var seedsText string

// seed is a valid object of a kind, possibly with a status.
type seed struct {
	resource recorded.Resource
	group    string
	version  string
	object   map[string]any
}

// name returns the resource as in rules.txt.
func (s *seed) name() string { return strings.TrimSuffix(s.resource.Plural+"."+s.group, ".") }

// collection returns the path of the resource.
func (s *seed) collection(namespace string) string {
	path := "/apis/" + s.group + "/" + s.version
	if s.group == "" {
		path = "/api/" + s.version
	}
	if s.resource.Namespaced {
		path += "/namespaces/" + namespace
	}
	return path + "/" + s.resource.Plural
}

func (s *seed) hasVerb(verb string) bool {
	for _, known := range s.resource.Verbs {
		if known == verb {
			return true
		}
	}
	return false
}

// readSeeds returns the objects of seeds.yaml, and fails if a served kind of builtin.RulesVersion has none.
func readSeeds(t testing.TB) (seeds []*seed) {
	t.Helper()
	text := strings.ReplaceAll(seedsText, "CSR", newRequest(t))
	byKind := map[string][]map[string]any{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		content, err := yaml.YAMLToJSON([]byte(document))
		require.NoError(t, err)
		object := decodeObject(t, content)
		key := nested.String(object, "apiVersion") + "/" + nested.String(object, "kind")
		byKind[key] = append(byKind[key], object)
	}
	groups, err := recorded.ReadGroups()
	require.NoError(t, err)
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				key := strings.TrimPrefix(group.Name+"/"+version.Name, "/") + "/" + resource.Kind
				switch isMissing := len(byKind[key]) == 0 && !isWithoutSeed(resource.Kind); {
				case isMissing && groups.Version["major"]+"."+groups.Version["minor"] == builtin.RulesVersion:
					t.Errorf("seeds.yaml has no %s", key)
				case isMissing: // apitest warns about each field of its objects
					t.Logf("seeds.yaml has no %s", key)
				}
				for _, object := range byKind[key] {
					seeds = append(seeds, &seed{resource: resource, group: group.Name, version: version.Name, object: object})
				}
			}
		}
	}
	return seeds
}

func decodeObject(t testing.TB, content []byte) (object map[string]any) {
	t.Helper()
	require.NoError(t, utiljson.Unmarshal(content, &object))
	return object
}

// isWithoutSeed reports whether a kind has no faults to draw: it has no fields or is probed as a subresource.
func isWithoutSeed(kind string) bool {
	return kind == "ComponentStatus" || kind == "Binding" || kind == "SelfSubjectReview"
}

// newRequest returns a certificate request in base64.
func newRequest(t testing.TB) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "probe"}}, key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
}
