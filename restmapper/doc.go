// Package restmapper finds the one resource that a name means: a plural, a singular, a kind or a short name, bare or
// with its group and version, as kubectl takes them. What it returns, a [Mapping], carries all that a request needs:
// path, scope, verbs and subresources.
//
// Its errors tell apart what is unknown or removed ([NoMatchError]), what has several meanings ([AmbiguousError]) and
// what cannot be told now ([UnavailableError]). [Mapper.RESTMapper] is the same for programs that take apimachinery's
// meta.RESTMapper.
package restmapper
