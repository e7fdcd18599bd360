// Native structs and shared columns in Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "column.hpp"
#include "fields.hpp"
#include "pack.hpp"

namespace agora {

// Shared columns are numpy arrays, read-only where the memory is native.
//
// An array given to native code is kept, not copied, if it is contiguous and of the right type. The
// array that shows a native column is a copy, made when somebody looks, and kept for the next look.

// A reference to a Python object that owns memory of native code. The last reference may be dropped
// without the interpreter's lock.
inline std::shared_ptr<void> share(nanobind::handle object) {
  return {object.inc_ref().ptr(), [](void* held) {
            const nanobind::gil_scoped_acquire locked;
            Py_DECREF(static_cast<PyObject*>(held));
          }};
}

namespace detail {

inline nanobind::handle dtype_of(char letter) {
  static constexpr char letters[] = "?bBhHiIqQ";
  static const std::array<nanobind::handle, sizeof(letters)> dtypes = [] {
    std::array<nanobind::handle, sizeof(letters)> named;
    for (size_t i = 0; letters[i]; ++i) named[i] = dtype_named(name_of(letters[i]));
    return named;
  }();
  return dtypes[static_cast<size_t>(std::strchr(letters, letter) - letters)];
}

// The letter of a buffer's type; 0 if it is none of a column.
inline char letter_of_format(const char* format) {
  if (!format || std::strlen(format) != 1) return 0;
  const char letter = *format == 'l' ? 'q' : *format == 'L' ? 'Q' : *format;
  return std::strchr("?bBhHiIqQ", letter) ? letter : '\0';
}

// numpy's arrays: their memory stays where it is for as long as they live. (Whoever resizes one by
// force, with refcheck=False, breaks that.)
inline bool is_array(nanobind::handle value) {
  static const nanobind::handle type =
      nanobind::object(nanobind::module_::import_("numpy").attr("ndarray")).release();
  return PyObject_TypeCheck(value.ptr(), reinterpret_cast<PyTypeObject*>(type.ptr()));
}

// The array as a column, its memory kept alive; false, with no Python error, if it is no contiguous
// array of integers [n] or [n, w].
inline bool borrow_array(nanobind::handle array, AnyColumn& column) {
  if (!is_array(array)) return false;
  const ContiguousBuffer buffer(array.ptr(), ContiguousBuffer::Access::Read);
  if (!buffer.valid() || buffer.is_copy()) return false;
  const char letter = letter_of_format(buffer.format());
  const int dimensions = buffer.dimensions();
  if (!letter || dimensions < 1 || dimensions > 2) return false;
  const auto rows = static_cast<size_t>(buffer.length(0));
  const size_t width = dimensions == 2 ? static_cast<size_t>(buffer.length(1)) : 0;
  if (dimensions == 2 && width == 0) return false;
  std::shared_ptr<void> owner = share(array);
  column = AnyColumn(letter, rows, width, buffer.data(), owner);
  column.face() = std::move(owner);
  return true;
}

[[noreturn]] inline void refuse_column(const char* field, char letter, bool table) {
  const std::string type = letter ? " " + name_of(letter) : " of integers ";
  const std::string shape = table ? "[n, width]" : letter ? "[n]" : "[n] or [n, width]";
  throw nanobind::value_error((std::string(field) + ": expected an array" + type + shape).c_str());
}

// An array of another layout as a contiguous one.
inline nanobind::object contiguous(nanobind::handle array) {
  static const nanobind::handle convert =
      nanobind::object(nanobind::module_::import_("numpy").attr("ascontiguousarray")).release();
  if (!is_array(array) || nanobind::cast<int>(array.attr("ndim")) == 0)
    return nanobind::borrow(array);
  return convert(array);
}

}  // namespace detail

// A column of the type `letter`, of one dimension or two. Throws ValueError naming the field for
// anything else.
inline AnyColumn column_from(nanobind::handle value, const char* field, char letter, bool table) {
  AnyColumn column;
  if ((detail::borrow_array(value, column) ||
       detail::borrow_array(detail::contiguous(value), column)) &&
      column.letter() == letter && column.is_table() == table)
    return column;
  detail::refuse_column(field, letter, table);
}

// A column of the array's own type, of one dimension or two. Errors as above.
inline AnyColumn column_from(nanobind::handle value, const char* field) {
  AnyColumn column;
  if (detail::borrow_array(value, column) ||
      detail::borrow_array(detail::contiguous(value), column))
    return column;
  detail::refuse_column(field, 0, false);
}

// The array that shows a column.
inline nanobind::object array_of(const AnyColumn& column) {
  if (!column.face()) {
    const NewArrayOf array(detail::dtype_of(column.letter()), column.rows(), column.width());
    if (column.bytes()) {  // (numpy cannot permute an empty array that is read-only)
      std::memcpy(array.data(), column.values(), column.bytes());
      static const nanobind::handle name = nanobind::str("setflags").release();
      static const nanobind::handle write = nanobind::str("write").release();
      PyObject* const arguments[] = {array.object().ptr(), Py_False};
      static const nanobind::handle keyword = nanobind::make_tuple(write).release();
      const nanobind::object done =
          nanobind::steal(PyObject_VectorcallMethod(name.ptr(), arguments, 1, keyword.ptr()));
      if (!done.is_valid()) throw nanobind::python_error();
    }
    column.face() = share(array.object());
  }
  return nanobind::borrow(static_cast<PyObject*>(column.face().get()));
}

// The Python class of a struct that lists its fields (fields.hpp) is used like a frozen dataclass
// with slots. It has the fields as read-only attributes and as arguments of the constructor,
// __match_args__, equality by value, a repr, and the fields that dataclasses.fields() and replace()
// look for; it can be pickled.

// How values of one type go to Python and come back. from() throws TypeError or ValueError that
// names the field.
template <class T>
struct BoundValue;

template <>
struct BoundValue<int64_t> {
  static nanobind::object to(int64_t value) { return nanobind::steal(PyLong_FromLongLong(value)); }
  static int64_t from(nanobind::handle value, const char* field) {
    const nanobind::object index = PyLong_Check(value.ptr())
                                       ? nanobind::borrow(value)
                                       : nanobind::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) {
      PyErr_Clear();
      throw nanobind::type_error((std::string(field) + ": expected an integer").c_str());
    }
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (!overflow) return number;
    PyErr_Format(PyExc_OverflowError, "%s: expected an integer of 64 bits", field);
    throw nanobind::python_error();
  }
};

template <>
struct BoundValue<bool> {
  static nanobind::object to(bool value) { return nanobind::borrow(value ? Py_True : Py_False); }
  static bool from(nanobind::handle value, const char* field) {
    const int truth = PyObject_IsTrue(value.ptr());
    if (truth >= 0) return truth != 0;
    PyErr_Clear();
    throw nanobind::type_error((std::string(field) + ": expected True or False").c_str());
  }
};

template <class T>
struct BoundValue<SharedColumn<T>> {
  static nanobind::object to(const AnyColumn& value) { return array_of(value); }
  static SharedColumn<T> from(nanobind::handle value, const char* field) {
    return SharedColumn<T>(column_from(value, field, letter_of<T>(), false));
  }
};

template <class T>
struct BoundValue<SharedTable<T>> {
  static nanobind::object to(const AnyColumn& value) { return array_of(value); }
  static SharedTable<T> from(nanobind::handle value, const char* field) {
    return SharedTable<T>(column_from(value, field, letter_of<T>(), true));
  }
};

template <>
struct BoundValue<AnyColumn> {
  static nanobind::object to(const AnyColumn& value) { return array_of(value); }
  static AnyColumn from(nanobind::handle value, const char* field) {
    return column_from(value, field);
  }
};

template <class T>
struct BoundValue<std::optional<T>> {
  static nanobind::object to(const std::optional<T>& value) {
    return value ? BoundValue<T>::to(*value) : nanobind::none();
  }
  static std::optional<T> from(nanobind::handle value, const char* field) {
    if (value.is_none()) return std::nullopt;
    return BoundValue<T>::from(value, field);
  }
};

// A struct with a Python class of its own.
template <class T>
struct BoundValue<std::shared_ptr<const T>> {
  static nanobind::object to(const std::shared_ptr<const T>& value) {
    return nanobind::cast(std::const_pointer_cast<T>(value));
  }
  static std::shared_ptr<const T> from(nanobind::handle value, const char* field) {
    std::shared_ptr<T> held;
    if (!nanobind::try_cast(value, held) || !held)
      throw nanobind::type_error((std::string(field) + ": expected a " + T::kName).c_str());
    return held;
  }
};

template <class T>
struct BoundValue<std::vector<T>> {
  static nanobind::object to(const std::vector<T>& values) {
    nanobind::object made = nanobind::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
    for (size_t at = 0; at < values.size(); ++at)
      PyTuple_SET_ITEM(made.ptr(), static_cast<Py_ssize_t>(at),
                       BoundValue<T>::to(values[at]).release().ptr());
    return made;
  }
  static std::vector<T> from(nanobind::handle value, const char* field) {
    std::vector<T> made;
    for (const nanobind::handle part : nanobind::iter(value))
      made.push_back(BoundValue<T>::from(part, field));
    return made;
  }
};

namespace detail {

template <class T, size_t at>
constexpr auto field_at() {
  return std::get<at>(T::fields());
}

template <class T, size_t at>
using FieldValue =
    std::remove_cvref_t<decltype(std::declval<const T&>().*field_at<T, at>().member)>;

template <class T, size_t at>
PyObject* get_field(PyObject* self, void*) {
  if (!nanobind::inst_ready(self)) {
    PyErr_SetString(PyExc_AttributeError, field_at<T, at>().name);
    return nullptr;
  }
  try {
    const T& of = *nanobind::inst_ptr<T>(self);
    complete(of);
    return BoundValue<FieldValue<T, at>>::to(of.*field_at<T, at>().member).release().ptr();
  } catch (nanobind::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

template <class T, size_t... at>
PyGetSetDef* getters(std::index_sequence<at...>) {
  static std::array<PyGetSetDef, sizeof...(at) + 1> made{
      PyGetSetDef{field_at<T, at>().name, &get_field<T, at>, nullptr, nullptr, nullptr}...,
      PyGetSetDef{}};
  return made.data();
}

template <size_t>
using Argument = nanobind::handle;

template <class T>
constexpr size_t required_fields() {
  if constexpr (requires { T::kRequired; }) return T::kRequired;
  return kFieldCount<T>;
}

template <class T, class Class, size_t... required, size_t... optional>
void bind_constructor(Class& bound, std::index_sequence<required...>,
                      std::index_sequence<optional...>) {
  const auto set = []<size_t at>(T& made, nanobind::handle value,
                                 std::integral_constant<size_t, at>) {
    made.*field_at<T, at>().member =
        BoundValue<FieldValue<T, at>>::from(value, field_at<T, at>().name);
  };
  constexpr size_t first = sizeof...(required);
  bound.def(
      "__init__",
      [set](T* self, Argument<required>... given, Argument<optional>... others) {
        T made;
        (set(made, given, std::integral_constant<size_t, required>{}), ...);
        // `...` stands for the default
        ((others.ptr() == Py_Ellipsis
              ? void()
              : set(made, others, std::integral_constant<size_t, first + optional>{})),
         ...);
        new (self) T(std::move(made));
      },
      nanobind::arg(field_at<T, required>().name).none()...,
      (nanobind::arg(field_at<T, first + optional>().name).none() =
           nanobind::borrow(Py_Ellipsis))...);
}

template <class T>
nanobind::tuple values_of(const T& of) {
  nanobind::list values;
  for_each_field(of, [&]<class Value>(const char*, const Value& value) {
    values.append(BoundValue<Value>::to(value));
  });
  return nanobind::tuple(values);
}

template <class Value>
bool equal_values(const Value& left, const Value& right) {
  return left == right;
}
template <class T>
bool equal_values(const std::shared_ptr<const T>& left, const std::shared_ptr<const T>& right);
template <class T>
bool equal_values(const std::vector<T>& left, const std::vector<T>& right) {
  if (left.size() != right.size()) return false;
  for (size_t at = 0; at < left.size(); ++at)
    if (!equal_values(left[at], right[at])) return false;
  return true;
}

template <class T>
bool equal_structs(const T& left, const T& right) {
  complete(left);
  complete(right);
  return std::apply(
      [&](const auto&... field) {
        return (equal_values(left.*field.member, right.*field.member) && ...);
      },
      T::fields());
}
template <class T>
bool equal_values(const std::shared_ptr<const T>& left, const std::shared_ptr<const T>& right) {
  return left == right || equal_structs(*left, *right);
}

}  // namespace detail

// The slots that the class of T is made with: its attributes.
template <class T>
PyType_Slot* field_slots() {
  static PyType_Slot slots[] = {
      {Py_tp_getset, detail::getters<T>(std::make_index_sequence<kFieldCount<T>>{})}, {0, nullptr}};
  return slots;
}

// Gives a class everything else.
template <class T, class Class>
void bind_fields(Class& bound) {
  constexpr size_t required = detail::required_fields<T>();
  detail::bind_constructor<T>(bound, std::make_index_sequence<required>{},
                              std::make_index_sequence<kFieldCount<T> - required>{});
  bound.def(
      "__eq__",
      [](const T& self, nanobind::handle other) -> nanobind::object {
        const T* right = nullptr;
        if (!nanobind::try_cast(other, right) || !right) return nanobind::borrow(Py_NotImplemented);
        return nanobind::bool_(detail::equal_structs(self, *right));
      },
      nanobind::arg().none());
  bound.attr("__hash__") = nanobind::none();
  bound.def("__repr__", [](const T& self) {
    std::string text = std::string(T::kName) + "(";
    bool first = true;
    for_each_field(self, [&]<class Value>(const char* name, const Value& value) {
      text += first ? "" : ", ";
      first = false;
      text += std::string(name) + "=" + nanobind::repr(BoundValue<Value>::to(value)).c_str();
    });
    return text + ")";
  });
  bound.def("__reduce__", [](nanobind::handle_t<T> self) {
    return nanobind::make_tuple(self.type(), detail::values_of(nanobind::cast<const T&>(self)));
  });
  nanobind::list names;
  std::apply([&](const auto&... field) { (names.append(nanobind::str(field.name)), ...); },
             T::fields());
  bound.attr("__match_args__") = bound.attr("__slots__") = nanobind::tuple(names);
  const nanobind::object shape =
      nanobind::module_::import_("dataclasses").attr("make_dataclass")(T::kName, names);
  bound.attr("__dataclass_fields__") = shape.attr("__dataclass_fields__");
}

// Packed columns (pack.hpp) of numpy arrays, and as arrays of their own.

// Appends the packed form of an integer or bool array [n] or [n, w], n < 2^32, w < 256. Returns
// false, with no Python error set and `bytes` as it was, for anything else.
inline bool pack_array(PyObject* array, std::string& bytes) {
  const ContiguousBuffer buffer(array);
  if (!buffer.valid()) return false;
  const bool table = buffer.dimensions() == 2;
  const bool shaped =
      buffer.dimensions() == 1 || (table && buffer.length(1) > 0 && buffer.length(1) < 256);
  if (!shaped || buffer.length(0) > std::numeric_limits<uint32_t>::max() ||
      std::strlen(buffer.format()) != 1)
    return false;
  const char code = *buffer.format();
  const char letter = code == 'l' ? 'q' : code == 'L' ? 'Q' : code;
  const ColumnShape shape{letter, static_cast<uint8_t>(table ? buffer.length(1) : 0),
                          static_cast<uint32_t>(buffer.length(0))};
  return pack_column(buffer.data(), shape, bytes);
}

// A packed column as an array of its own.
inline nanobind::object array_of(const PackedColumn& packed) {
  const auto& [letter, width, rows] = packed.shape;
  const NewArrayOf array(detail::dtype_of(letter), rows, width);
  packed.unpack(array.data());
  return array.object();
}

}  // namespace agora
