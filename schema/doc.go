// Package schema reads the schemas of any kind from an API server's OpenAPI v3 documents (KEP-2896), or from
// CustomResourceDefinitions:
//
//	schemas := schema.New(conn, nil)
//	deployment, err := schemas.Kind(ctx, resource.GVK)
//	if err != nil {
//		return err
//	}
//	image, err := deployment.At("spec", "template", "spec", "containers", "[name=app]", "image")
//
// [Client] reads one document for each group version that is asked for, and decodes only the schemas that are read. With
// [Options].Dir documents are kept on disk under the server's hash, and a warm start is one request, for the list of hashes.
// [Client.Save] and [NewOffline] use the documents without a cluster. [Schema.Validate] validates an object before it is sent. The
// API is described at https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3.
package schema
