package kubeconfig

import (
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// Extensions holds data of other programs by its name, as JSON. In a file it is a list of names and extensions.
type Extensions map[string]json.RawMessage

type namedExtension struct {
	Name      string          `json:"name"`
	Extension json.RawMessage `json:"extension"`
}

// extensionError is a mistake in a list of extensions; it quotes none of them.
type extensionError string

func (e extensionError) Error() string { return string(e) }

// UnmarshalJSON reads a file's list. As in kubectl each name may be there once.
func (e *Extensions) UnmarshalJSON(data []byte) error {
	var list []namedExtension
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &list); err != nil {
		return extensionError("it must be a list of mappings, each with a name, which is a string, and an extension")
	}
	if len(list) == 0 {
		*e = nil
		return nil
	}
	*e = make(Extensions, len(list))
	for _, named := range list {
		if _, taken := (*e)[named.Name]; taken {
			return extensionError(fmt.Sprintf("two extensions are named %q: rename or delete one", named.Name))
		}
		if len(named.Extension) == 0 {
			named.Extension = json.RawMessage("null")
		}
		(*e)[named.Name] = named.Extension
	}
	return nil
}
