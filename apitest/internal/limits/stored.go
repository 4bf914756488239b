package limits

import (
	"encoding/json"
	"errors"
	"fmt"
)

const (
	maxStored  = 3 << 19 // etcd's limit of a request
	maxMessage = 2 << 20 // the API server's limit of a message to etcd
)

// CheckStored returns the error of etcd for an object that is too large to be stored. The size is the object's JSON. A real server
// stores built-in kinds as Protobuf, whose JSON is a little larger.
func CheckStored(obj map[string]any) error {
	const maxExpansion = 6 // of an escaped character
	if jsonSize(obj)*maxExpansion < maxStored {
		return nil
	}
	data, err := json.Marshal(obj)
	switch {
	case err != nil:
		return err
	case len(data) > maxMessage:
		return fmt.Errorf("rpc error: code = ResourceExhausted desc = trying to send message larger than max (%d vs. %d)", len(data), maxMessage)
	case len(data) > maxStored:
		return errors.New("etcdserver: request is too large")
	}
	return nil
}

// jsonSize returns an upper bound of the bytes of a value's JSON before escaping.
func jsonSize(value any) int {
	const maxNumber = 24
	switch value := value.(type) {
	case string:
		return len(value) + 3
	case map[string]any:
		size := 3
		for name, child := range value {
			size += len(name) + 4 + jsonSize(child)
		}
		return size
	case []any:
		size := 3
		for _, child := range value {
			size += jsonSize(child)
		}
		return size
	}
	return maxNumber
}
