package generate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/anykind/anykind/unstructured"
)

// AppendHash appends kubectl's hash of the content to the name of a ConfigMap or Secret.
func AppendHash(obj *unstructured.Object) error {
	hashed := object{"kind": obj.GetKind(), "name": obj.GetName(), "data": object{}}
	if data, _, _ := unstructured.Get[map[string]any](obj, "data"); data != nil {
		hashed["data"] = data
	}
	switch binary, hasBinary, _ := unstructured.Get[map[string]any](obj, "binaryData"); {
	case obj.GetKind() == "Secret":
		kind, _, _ := unstructured.Get[string](obj, "type")
		hashed["type"] = kind
	case hasBinary && len(binary) > 0:
		hashed["binaryData"] = binary
	}
	encoded, err := json.Marshal(hashed)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(encoded)
	// Like generated names, the hash must not spell words.
	hash := strings.NewReplacer("0", "g", "1", "h", "3", "k", "a", "m", "e", "t").Replace(hex.EncodeToString(sum[:])[:10])
	obj.SetName(fmt.Sprintf("%s-%s", obj.GetName(), hash))
	return nil
}
