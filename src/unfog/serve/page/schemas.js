// JSON schemas in words: which fields there are, of which kind, and what one may look like.

const DEEP = 4; // schemas inside schemas that are followed

function resolved(schema, whole) {
  return schema.$ref
    ? (schema.$ref
        .slice(2)
        .split("/")
        .reduce((found, step) => found?.[step], whole) ?? {})
    : schema;
}

const ways = (schema) => schema.anyOf ?? schema.oneOf ?? null;

/** What a value is, in a few words. */
export function kindOf(schema, whole, depth = 0) {
  const one = resolved(schema, whole);
  if (depth > DEEP) return "…";
  if (one.const !== undefined) return JSON.stringify(one.const);
  if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(", ");
  if (ways(one)) return [...new Set(ways(one).map((way) => kindOf(way, whole, depth + 1)))].join(" or ");
  if (Array.isArray(one.type)) return one.type.join(" or ");
  if (one.type === "array") return `list of ${kindOf(one.items ?? {}, whole, depth + 1)}`;
  if (one.type === "object" && !one.properties && typeof one.additionalProperties === "object") {
    return `mapping to ${kindOf(one.additionalProperties, whole, depth + 1)}`;
  }
  return one.title && one.properties ? one.title : (one.type ?? "anything");
}

/** The fields of an object. */
export function fieldsOf(schema, whole) {
  const one = resolved(schema, whole);
  const found =
    ways(one)
      ?.map((way) => resolved(way, whole))
      .find((way) => way.properties) ?? one;
  const must = new Set(found.required ?? []);
  return Object.entries(found.properties ?? {}).map(([name, field]) => {
    const said = resolved(field, whole).description ?? field.description ?? "";
    const standard =
      field.default === undefined || field.default === null
        ? ""
        : ` Unless told: ${JSON.stringify(field.default)}.`;
    return { name, kind: kindOf(field, whole), said: said + standard, must: must.has(name) };
  });
}

/** A value that a schema allows: its example, or the plainest one. */
export function sampleOf(schema, whole, depth = 0) {
  const one = resolved(schema, whole);
  if (depth > DEEP) return null;
  if (one.example !== undefined) return one.example;
  if (one.examples?.length) return one.examples[0];
  if (one.default !== undefined) return one.default;
  if (one.const !== undefined) return one.const;
  if (one.enum) return one.enum[0];
  if (ways(one)) return sampleOf(ways(one)[0], whole, depth + 1);
  return plainest(one, whole, depth);
}

function plainest(one, whole, depth) {
  const kind = Array.isArray(one.type) ? one.type[0] : one.type;
  if (one.properties) {
    const must = new Set(one.required ?? []);
    const kept = Object.entries(one.properties).filter(([name]) => must.size === 0 || must.has(name));
    return Object.fromEntries(kept.map(([name, field]) => [name, sampleOf(field, whole, depth + 1)]));
  }
  if (kind === "array") return one.items ? [sampleOf(one.items, whole, depth + 1)] : [];
  if (kind === "object")
    return one.additionalProperties?.type
      ? { name: sampleOf(one.additionalProperties, whole, depth + 1) }
      : {};
  return { string: "text", number: 0.5, integer: 1, boolean: true, null: null }[kind] ?? null;
}
