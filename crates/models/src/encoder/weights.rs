//! Reads the tensors of an encoder.

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

/// The tensors of a model by their names.
pub trait Tensors {
    /// The numbers of a tensor, which must have this shape. All are finite.
    fn load(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String>;

    /// A tensor of which single rows are read.
    fn table(&self, name: &str, rows: usize, width: usize) -> Result<Table, String> {
        Ok(Table::Floats { width, values: self.load(name, &[rows, width])? })
    }
}

/// A matrix of which single rows are read.
pub enum Table {
    Floats {
        width: usize,
        values: Vec<f32>,
    },
    /// As it is in the program: two numbers in a byte, and a scale for each group of them.
    Packed(Packed),
}

impl Table {
    pub fn rows(&self) -> usize {
        match self {
            Self::Floats { width, values } => values.len() / width,
            Self::Packed(packed) => packed.rows,
        }
    }

    /// Adds a row to `sum`.
    pub fn add_row(&self, row: usize, sum: &mut [f32]) {
        match self {
            Self::Floats { width, values } => {
                for (sum, value) in sum.iter_mut().zip(&values[row * width..(row + 1) * width]) {
                    *sum += value;
                }
            }
            Self::Packed(packed) => {
                for (index, sum) in sum.iter_mut().enumerate() {
                    *sum += packed.value(row * packed.width + index);
                }
            }
        }
    }
}

/// Numbers of four bits: the low half of a byte first, 8 is zero, and a scale of 16 bits for each 32 numbers.
#[derive(Clone, Copy)]
pub struct Packed {
    pub rows: usize,
    pub width: usize,
    pub halves: &'static [u8],
    pub scales: &'static [[u8; 2]],
}

impl Packed {
    pub const GROUP: usize = 32;

    pub fn value(&self, index: usize) -> f32 {
        let half = (self.halves[index / 2] >> (index % 2 * 4)) & 15;
        f32::from(i16::from(half) - 8) * f16::from_le_bytes(self.scales[index / Self::GROUP]).to_f32()
    }

    pub fn values(&self) -> Vec<f32> {
        (0..self.rows * self.width).map(|index| self.value(index)).collect()
    }
}

/// Tensors in the format of `safetensors`, with a prefix before all names.
pub struct Stored<'a> {
    file: SafeTensors<'a>,
    prefix: &'static str,
}

/// A tensor that every encoder has.
const FIRST: &str = "embeddings.word_embeddings.weight";

impl<'a> Stored<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        // A model that was saved with a head has its encoder under this name.
        let prefix = if file.tensor(FIRST).is_err() && file.tensor(&format!("bert.{FIRST}")).is_ok() {
            "bert."
        } else {
            ""
        };
        Ok(Self { file, prefix })
    }
}

impl Tensors for Stored<'_> {
    fn load(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let tensor =
            self.file.tensor(&format!("{}{name}", self.prefix)).map_err(|error| error.to_string())?;
        if tensor.shape() != shape {
            return Err(format!("{name} has the shape {:?} in place of {shape:?}", tensor.shape()));
        }
        let data = tensor.data();
        let values: Vec<f32> = match tensor.dtype() {
            Dtype::F32 => data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            Dtype::F16 => {
                data.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect()
            }
            Dtype::BF16 => {
                data.as_chunks().0.iter().map(|bytes| bf16::from_le_bytes(*bytes).to_f32()).collect()
            }
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a weight that does not fit is refused below"
            )]
            Dtype::F64 => data.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes) as f32).collect(),
            other => return Err(format!("{name} has numbers of the type {other:?}")),
        };
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            Err(format!("{name} has numbers that are not finite"))
        }
    }
}
