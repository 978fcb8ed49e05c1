// SPDX-License-Identifier: Apache-2.0
//
// tree.c is what a grammar's WebAssembly module exports: text in, a flat syntax tree
// out. It imports nothing, so that the module can do nothing but compute.
//
// A node is four little-endian words: kind and flags and field, start, end, and how
// many nodes its subtree has, itself included. Nodes come in preorder. Unnamed nodes
// are left out unless they stand in a field, as operators do, or were missing.

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tree_sitter/api.h>

#define EXPORT(name) __attribute__((export_name(name)))

const TSLanguage *GRAMMAR(void);

enum { NAMED = 1, ERROR = 2, MISSING = 4 };
enum { DONE = 0, TOO_LARGE = 1, TOO_LONG = 2, BROKEN = 3 };

typedef struct {
  uint32_t kind; // symbol | flags << 16 | field << 24
  uint32_t start, end, size;
} Node;

typedef struct {
  uint32_t status, count, error, nodes;
} Answer;

typedef struct {
  const char *text;
  uint32_t length, left;
} Work;

static Answer answer;

EXPORT("reserve") void *reserve(uint32_t size) { return malloc(size); }

static const char *piece(void *payload, uint32_t at, TSPoint where, uint32_t *read) {
  const Work *work = payload;
  (void)where;
  if (at >= work->length) {
    *read = 0;
    return "";
  }
  *read = work->length - at;
  return work->text + at;
}

// astray is how many steps are left to a parser that no longer understands: its search
// for a way on is of the text's length squared.
static const uint32_t astray = 60;

// tick counts the parser's steps, so that the limit is the same on every machine.
static bool tick(TSParseState *state) {
  Work *work = state->payload;
  if (state->has_error && work->left > astray) work->left = astray;
  if (work->left == 0) return true;
  work->left--;
  return false;
}

static bool kept(TSTreeCursor *cursor, TSNode node) {
  return ts_node_is_named(node) || ts_node_is_missing(node) || ts_tree_cursor_current_field_id(cursor) != 0;
}

static Node flat(TSTreeCursor *cursor, TSNode node) {
  uint32_t flags = (ts_node_is_named(node) ? NAMED : 0) | (ts_node_is_error(node) ? ERROR : 0) | (ts_node_is_missing(node) ? MISSING : 0);
  uint32_t field = ts_tree_cursor_current_field_id(cursor);
  return (Node){ts_node_symbol(node) | flags << 16 | field << 24, ts_node_start_byte(node), ts_node_end_byte(node), 1};
}

// flatten writes the tree without recursion: its depth is the stranger's choice.
static uint32_t flatten(TSNode root, Node *nodes, uint32_t *open, uint32_t most, uint32_t *count) {
  TSTreeCursor cursor = ts_tree_cursor_new(root);
  uint32_t depth = 0, n = 0, status = DONE;
  for (;;) {
    TSNode node = ts_tree_cursor_current_node(&cursor);
    if (n == most || depth == most) {
      status = TOO_LARGE;
      break;
    }
    open[depth] = n;
    if (depth == 0 || kept(&cursor, node)) nodes[n++] = flat(&cursor, node);
    else open[depth] = UINT32_MAX;
    if (ts_tree_cursor_goto_first_child(&cursor)) {
      depth++;
      continue;
    }
    for (;;) {
      if (open[depth] != UINT32_MAX) nodes[open[depth]].size = n - open[depth];
      if (depth == 0) goto done;
      if (ts_tree_cursor_goto_next_sibling(&cursor)) break;
      ts_tree_cursor_goto_parent(&cursor);
      depth--;
    }
  }
done:
  ts_tree_cursor_delete(&cursor);
  *count = n;
  return status;
}

// parse reads length bytes of UTF-8 at text. The module is used once: what is
// allocated is never given back.
EXPORT("parse") Answer *parse(const char *text, uint32_t length, uint32_t most, uint32_t steps) {
  Work work = {text, length, steps};
  answer = (Answer){BROKEN, 0, 1, 0};
  TSParser *parser = ts_parser_new();
  Node *nodes = malloc(sizeof(Node) * (size_t)most);
  uint32_t *open = malloc(sizeof(uint32_t) * (size_t)most);
  if (!parser || !nodes || !open || !ts_parser_set_language(parser, GRAMMAR())) return &answer;
  TSInput input = {&work, piece, TSInputEncodingUTF8, NULL};
  TSParseOptions options = {&work, tick};
  TSTree *tree = ts_parser_parse_with_options(parser, NULL, input, options);
  if (!tree) {
    answer.status = TOO_LONG;
    return &answer;
  }
  TSNode root = ts_tree_root_node(tree);
  answer.error = ts_node_has_error(root);
  answer.status = flatten(root, nodes, open, most, &answer.count);
  answer.nodes = (uint32_t)(uintptr_t)nodes;
  return &answer;
}

// name returns the kinds' names (what 0) or the fields' (what 1), NULL past the last.
EXPORT("name") const char *name(uint32_t what, uint32_t id) {
  const TSLanguage *language = GRAMMAR();
  if (what == 0) return id < ts_language_symbol_count(language) ? ts_language_symbol_name(language, (TSSymbol)id) : NULL;
  return id <= ts_language_field_count(language) ? (id ? ts_language_field_name_for_id(language, (TSFieldId)id) : "") : NULL;
}
