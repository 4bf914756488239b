package protobuf_test

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/testing/protobufform"
)

// mutations change an encoded message.
var mutations = map[string]func(r *rand.Rand, raw []byte) []byte{
	"truncated": func(r *rand.Rand, raw []byte) []byte { return raw[:r.Intn(len(raw)+1)] },
	"changed byte": func(r *rand.Rand, raw []byte) []byte {
		changed := bytes.Clone(raw)
		if len(changed) > 0 {
			changed[r.Intn(len(changed))] = byte(r.Intn(256))
		}
		return changed
	},
	"reordered": within(func(r *rand.Rand, fields [][]byte) [][]byte {
		r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		return fields
	}),
	"repeated": within(func(r *rand.Rand, fields [][]byte) [][]byte {
		if len(fields) == 0 {
			return fields
		}
		return slices.Insert(fields, r.Intn(len(fields)+1), fields[r.Intn(len(fields))])
	}),
	"missing": within(func(r *rand.Rand, fields [][]byte) [][]byte {
		if len(fields) == 0 {
			return fields
		}
		at := r.Intn(len(fields))
		return slices.Delete(fields, at, at+1)
	}),
	"unknown": within(func(r *rand.Rand, fields [][]byte) [][]byte {
		wire := []uint64{0, 1, 2, 5}[r.Intn(4)]
		content := map[uint64][]byte{0: {7}, 1: make([]byte, 8), 2: {1, 'x'}, 5: make([]byte, 4)}
		return slices.Insert(fields, r.Intn(len(fields)+1), append(binary.AppendUvarint(nil, unknownNumber<<3|wire), content[wire]...))
	}),
	"overlong": within(func(r *rand.Rand, fields [][]byte) [][]byte {
		if len(fields) == 0 {
			return fields
		}
		at := r.Intn(len(fields))
		tag, n := binary.Uvarint(fields[at])
		rest := fields[at][n:]
		if value, m := binary.Uvarint(rest); tag&7 != 1 && tag&7 != 5 {
			rest = slices.Concat(overlong(r, value), rest[m:])
		}
		fields[at] = slices.Concat(overlong(r, tag), rest)
		return fields
	}),
}

const unknownNumber = 1000

// overlong encodes a varint with more bytes than necessary.
func overlong(r *rand.Rand, value uint64) []byte {
	encoded := binary.AppendUvarint(nil, value)
	for range r.Intn(max(11-len(encoded), 1)) {
		encoded[len(encoded)-1] |= 0x80
		encoded = append(encoded, 0)
	}
	return encoded
}

// within returns a mutation of the fields of a message, or of a message within it.
func within(mutate func(r *rand.Rand, fields [][]byte) [][]byte) func(r *rand.Rand, raw []byte) []byte {
	var change func(r *rand.Rand, raw []byte) []byte
	change = func(r *rand.Rand, raw []byte) []byte {
		fields := split(raw)
		if len(fields) > 0 && r.Intn(3) > 0 {
			at := r.Intn(len(fields))
			tag, n := binary.Uvarint(fields[at])
			_, m := binary.Uvarint(fields[at][n:])
			if content := fields[at][n+m:]; tag&7 == 2 && split(content) != nil {
				inner := change(r, content)
				fields[at] = slices.Concat(fields[at][:n], binary.AppendUvarint(nil, uint64(len(inner))), inner)
				return bytes.Join(fields, nil)
			}
		}
		return bytes.Join(mutate(r, fields), nil)
	}
	return change
}

// split returns the encoded fields of a message, or nil if raw is none.
func split(raw []byte) (fields [][]byte) {
	for len(raw) > 0 {
		tag, n := binary.Uvarint(raw)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 100 {
			return nil
		}
		value, m := binary.Uvarint(raw[n:])
		size := uint64(n)
		switch tag & 7 {
		case 0:
			size += uint64(m)
		case 1:
			size += 8
		case 2:
			size += uint64(m) + value
		default:
			return nil
		}
		if m <= 0 && tag&7 != 1 || size > uint64(len(raw)) {
			return nil
		}
		fields = append(fields, raw[:size:size])
		raw = raw[size:]
	}
	return fields
}

// TestDecode_MutatedMessages changes encoded objects. The decoder returns an error, or what the generated code decodes.
func TestDecode_MutatedMessages(t *testing.T) {
	count := max(objectsPerKind(t)/10, 1)
	for name, mutate := range mutations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal := 0
			unknown := 0
			failed := 0
			for i, k := range kinds(t) {
				decoder, err := protobufform.New(k.GroupVersionKind)
				require.NoError(t, err)
				filler := randomObjects(int64(i))
				r := rand.New(rand.NewSource(int64(i)))
				for range count {
					obj := k.new()
					filler.Fill(obj)
					raw, err := obj.Marshal()
					require.NoError(t, err)
					raw = mutate(r, raw)
					got, err := decoder.Decode(raw)
					if err != nil {
						require.ErrorAs(t, err, new(*protobufform.Error), "%s", k)
						failed++
						if protobufform.IsUnknownField(err) {
							unknown++
						}
						continue
					}
					want, err := fromServer(k, raw)
					if err != nil {
						continue
					}
					equal++
					require.Empty(t, difference("", want, any(got.Object)), "%s", k)
					var fromJSON map[string]any
					require.NoError(t, kjson.Unmarshal(got.JSON, &fromJSON), "%s", got.JSON)
					require.Empty(t, difference("", want, fromJSON), "%s as JSON", k)
				}
			}
			t.Logf("%d equal, %d errors, %d of unknown fields", equal, failed, unknown)
			assert.Positive(t, equal+failed)
			if name == "unknown" {
				assert.Positive(t, unknown)
			}
		})
	}
}
